package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// usageError is a wrong flag or argument, in one line that names it. It never holds a secret.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...)}
}

// commandLineError turns kong's error about a command line into a usageError. Kong quotes the text
// that it found in place of a flag's value; that may be part of a secret, so the message is
// replaced.
func commandLineError(err error) error {
	var wrong *usageError
	var setting *settingError
	if errors.As(err, &wrong) || errors.As(err, &setting) {
		return err
	}
	message := oneLine(err.Error())
	flag, what, found := strings.Cut(message, ": ")
	switch {
	case !found:
	case strings.HasPrefix(what, "bool value"):
		return usagef("%s: must be true or false, or stand alone", flag)
	case strings.HasPrefix(flag, "--"):
		return usagef("%s: its value is missing (write %s=VALUE if the value begins with a dash)",
			flag, flag)
	}
	return usagef("%s", message)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// helpText returns the help of a flag with the name of its variable.
func helpText(value *kong.Value) string {
	variable := value.Tag.Get("variable")
	if variable == "" {
		return value.Help
	}
	return fmt.Sprintf("%s [$%s]", value.Help, variable)
}
