package main

import (
	"slices"
	"strings"

	"gatehouse/providers/messenger"
)

// messengers checks the ways by which people are reached. What may be a password is never shown, also when it is cut in two by a comma
// that should have been written as %2C.
func (v *values) messengers(name string, texts []string) []messenger.Target {
	texts = trimmed(texts)
	v.effective[name] = redactURL(strings.Join(texts, ","))
	var targets []messenger.Target
	shown := make([]string, len(texts))
	for i, text := range texts {
		t, err := messenger.ParseTarget(text)
		if err != nil {
			v.refuse(name, "%v", err)
			return nil
		}
		targets = append(targets, t)
		shown[i] = redactURL(text)
	}
	v.effective[name] = strings.Join(shown, ",")
	return targets
}

// signingSecret checks what webhooks are signed with.
func (v *values) signingSecret(name, text string) string {
	text = v.secret(name, text)
	if text != "" && len(text) < messenger.MinSecret {
		v.refuse(name, "must have at least %d characters, such as openssl rand -hex 32 makes", messenger.MinSecret)
	}
	return text
}

// sender checks the address that e-mails are from.
func (v *values) sender(name, text string) string {
	v.effective[name] = text
	if text == "" {
		return ""
	}
	if _, err := messenger.ParseSender(text); err != nil {
		v.refuse(name, "%v", err)
	}
	return text
}

// checkMessengers checks what the ways need.
func (v *values) checkMessengers(c config) {
	switch {
	case c.MessengerSecret == "" && slices.ContainsFunc(c.Messengers, messenger.Target.IsWebhook):
		v.refuse("messenger", "needs the secret of webhooks in GATEHOUSE_MESSENGER_SECRET (--messenger-secret)")
	case c.MessengerFrom == "" && slices.ContainsFunc(c.Messengers, messenger.Target.IsMail):
		v.refuse("messenger", "needs the sender of e-mails in GATEHOUSE_MESSENGER_FROM (--messenger-from)")
	}
}
