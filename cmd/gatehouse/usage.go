package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// usageError is a wrong flag, setting or argument, said in one line that names it. It never holds a secret.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...)}
}

// commandLineError turns what kong says of a command line into a usageError. Kong quotes what it found where it
// expected the value of a flag, which may be half a secret, so that message is replaced.
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
		return usagef("%s: its value is missing (write %s=VALUE when the value begins with a dash)", flag, flag)
	}
	return usagef("%s", message)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// helpText is a flag's line in the help: what it does and the variable that stands for it.
func helpText(value *kong.Value) string {
	variable := value.Tag.Get("variable")
	if variable == "" {
		return value.Help
	}
	return fmt.Sprintf("%s [$%s]", value.Help, variable)
}
