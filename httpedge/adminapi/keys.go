package adminapi

import (
	"errors"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
)

// keyRecord says that there is a new key, not what it is.
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
		return nil, &adminProblem{status: fasthttp.StatusConflict, code: "conflict",
			message: "Access tokens signed with the previous key are still good. Rotate again from " + timestamp(again) + " on."}
	}
	if err != nil {
		return nil, err
	}
	return keyRecord{timestamp(made), timestamp(again)}, nil
}
