package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

type clientRotateSecret struct {
	remoteFlags
	ID string `arg:"" name:"id" help:"The client_id."`
}

// Help is shown by gatehouse client rotate-secret --help.
func (*clientRotateSecret) Help() string {
	return "Both secrets are valid until gatehouse client revoke-secret revokes the older one.\n\n" +
		clientExample("rotate-secret", "")
}

// Run creates a second secret.
func (c *clientRotateSecret) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	response, err := r.call(http.MethodPost, itemPath(pathClients, c.ID, "secrets"), nil)
	if err != nil {
		return err
	}
	if err := r.show(response); err != nil || c.JSON {
		return err
	}
	return r.say("Keep the client_secret: it is not shown again. " +
		"The older one is valid until gatehouse client revoke-secret.")
}

type clientRevokeSecret struct {
	remoteFlags
	ID     string `arg:"" name:"id" help:"The client_id."`
	Secret string `arg:"" name:"secret-id" optional:"" help:"Id of the secret, as gatehouse client show prints it (default: the older of two)."`
}

// Help is shown by gatehouse client revoke-secret --help.
func (*clientRevokeSecret) Help() string {
	return clientExample("rotate-secret", "") +
		"\n    gatehouse client revoke-secret --demo ./gatehouse-demo \"$client\""
}

// Run revokes a secret.
func (c *clientRevokeSecret) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	secret := c.Secret
	if secret == "" {
		if secret, err = r.olderSecret(c.ID); err != nil {
			return err
		}
	}
	response, err := r.call(http.MethodDelete, itemPath(pathClients, c.ID, "secrets", secret), nil)
	if err != nil {
		return err
	}
	return r.show(response)
}

// olderSecret returns the id of the older of a client's two secrets.
func (r *remote) olderSecret(client string) (string, error) {
	response, err := r.call(http.MethodGet, itemPath(pathClients, client), nil)
	if err != nil {
		return "", err
	}
	var record struct {
		Secrets []struct {
			ID string `json:"id"`
		} `json:"secrets"`
	}
	if err := json.Unmarshal(response, &record); err != nil {
		return "", fmt.Errorf("read client: %w", err)
	}
	if len(record.Secrets) < 2 {
		return "", errors.New("the client has only one secret: rotate-secret creates another")
	}
	return record.Secrets[0].ID, nil
}
