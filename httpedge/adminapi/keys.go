package adminapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
)

// listedKey is an oauth.KeyInfo in a response.
type listedKey struct {
	Purpose   oauth.Purpose `json:"purpose"`
	Number    uint16        `json:"number"`
	CreatedAt string        `json:"created_at"`
	StartsAt  string        `json:"starts_at,omitempty"` // of a key that signs: its first use
	ExpiresAt *string       `json:"expires_at"`          // null = it is the current one
	KeyFile   string        `json:"key_file"`
}

// keyList has all keys: there are few.
type keyList struct {
	Keys []listedKey `json:"keys"`
}

func listKeys(c *adminCall) (any, error) {
	all, err := c.tokens.ListKeys(c.context)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	list := keyList{Keys: make([]listedKey, len(all))}
	for i, key := range all {
		list.Keys[i] = listedKey{Purpose: key.Purpose, Number: key.Number,
			CreatedAt: timestamp(key.Made), KeyFile: key.File}
		if !key.Starts.IsZero() {
			list.Keys[i].StartsAt = timestamp(key.Starts)
		}
		if !key.Expires.IsZero() {
			expires := timestamp(key.Expires)
			list.Keys[i].ExpiresAt = &expires
		}
	}
	return list, nil
}

// keyRecord describes a new key without its value.
type keyRecord struct {
	CreatedAt   string        `json:"created_at"`
	RotateAgain string        `json:"rotate_again_at"` // not before
	Purpose     oauth.Purpose `json:"purpose"`
}

func rotateKeys(c *adminCall) (any, error) {
	o, err := c.optionalObject()
	if err != nil {
		return nil, err
	}
	text, atOnce := string(oauth.TokenKeys), false
	o.text("purpose", &text)
	o.flag("now", &atOnce)
	purpose := oauth.Purpose(text)
	if !slices.Contains(oauth.Purposes, purpose) {
		o.refuse("purpose", "must be "+purposes())
	}
	if err := o.end(); err != nil {
		return nil, err
	}
	again, err := c.tokens.RotateKeys(c.context, purpose, atOnce, c.now)
	if errors.Is(err, oauth.ErrKeysInUse) {
		problem := endpoint.ProblemOf(err)
		return nil, problem.Saying(problem.Message + " Rotate again from " + timestamp(again) +
			" on.")
	}
	if err != nil {
		return nil, err
	}
	if purpose == oauth.FactorKeys {
		if _, err := c.people.ResealFactors(c.context); err != nil {
			return nil, err
		}
	}
	return keyRecord{timestamp(c.now), timestamp(again), purpose}, nil
}

// purposes returns the names of all purposes, as in "a, b or c".
func purposes() string {
	var names []string
	for _, p := range oauth.Purposes {
		names = append(names, string(p))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
