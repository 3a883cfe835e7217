package adminapi

import (
	"errors"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
)

// keyRecord describes a new key without its value.
type keyRecord struct {
	CreatedAt   string `json:"created_at"`
	RotateAgain string `json:"rotate_again_at"` // not before
}

func rotateKeys(c *adminCall) (any, error) {
	if err := c.nothing(); err != nil {
		return nil, err
	}
	made, again, err := c.tokens.RotateKeys(c.context, c.now)
	if errors.Is(err, oauth.ErrKeysInUse) {
		problem := endpoint.ProblemOf(err)
		return nil, problem.Saying(problem.Message + " Rotate again from " + timestamp(again) +
			" on.")
	}
	if err != nil {
		return nil, err
	}
	return keyRecord{timestamp(made), timestamp(again)}, nil
}
