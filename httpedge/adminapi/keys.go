package adminapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
)

// StoredKey describes a secret key without its value.
type StoredKey struct {
	Purpose oauth.Purpose
	Number  uint16
	Made    time.Time
	Expires time.Time // zero = it is the current one
	File    string    // short name of the key file that it is wrapped under
}

// ListKeys returns all keys in the order of oauth.Purposes, the current one of each first.
type ListKeys func(context.Context) ([]StoredKey, error)

// storedKey is a StoredKey in a response.
type storedKey struct {
	Purpose   oauth.Purpose `json:"purpose"`
	Number    uint16        `json:"number"`
	CreatedAt string        `json:"created_at"`
	ExpiresAt *string       `json:"expires_at"` // null = it is the current one
	KeyFile   string        `json:"key_file"`
}

// keyList has all keys: there are few.
type keyList struct {
	Keys []storedKey `json:"keys"`
}

func listKeys(c *adminCall) (any, error) {
	all, err := c.listKeys(c.context)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	list := keyList{Keys: make([]storedKey, len(all))}
	for i, key := range all {
		list.Keys[i] = storedKey{key.Purpose, key.Number, timestamp(key.Made), nil, key.File}
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
	text, drop := string(oauth.TokenKeys), false
	o.text("purpose", &text)
	o.flag("now", &drop)
	purpose := oauth.Purpose(text)
	if !slices.Contains(oauth.Purposes, purpose) {
		o.refuse("purpose", "must be "+purposes())
	}
	if err := o.end(); err != nil {
		return nil, err
	}
	again, err := c.tokens.RotateKeys(c.context, purpose, drop, c.now)
	if errors.Is(err, oauth.ErrKeysInUse) {
		problem := endpoint.ProblemOf(err)
		return nil, problem.Saying(problem.Message + " Rotate again from " + timestamp(again) +
			" on.")
	}
	if err != nil {
		return nil, err
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
