package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// passwordFlags say where a password comes from; at most one is given.
type passwordFlags struct {
	PasswordStdin bool    `name:"password-stdin" xor:"password" help:"Read the password from standard input."`
	PasswordFile  *string `name:"password-file" xor:"password" placeholder:"FILE" help:"Read the password from a file."`
	Password      *string `name:"password" xor:"password" placeholder:"PASSWORD" help:"The password. Other users of this machine can see it."`
}

const maxPasswordBytes = 4096 // read at most; the service accepts fewer

// read returns the password without a line break at its end. given is false if there is no flag.
func (f *passwordFlags) read(p *program) (password string, given bool, err error) {
	switch {
	case f.PasswordStdin:
		password, err = readPassword(p.stdin)
		if err != nil {
			return "", false, fmt.Errorf("--password-stdin: %w", err)
		}
	case f.PasswordFile != nil:
		if password, err = readPasswordFile(*f.PasswordFile); err != nil {
			return "", false, fmt.Errorf("--password-file: %w", err)
		}
	case f.Password != nil:
		password = *f.Password
	default:
		return "", false, nil
	}
	if password == "" {
		return "", false, usagef("the password is empty")
	}
	return password, true, nil
}

func readPasswordFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	password, err := readPassword(file)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	return password, err
}

func readPassword(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxPasswordBytes+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxPasswordBytes {
		return "", fmt.Errorf("longer than %d bytes", maxPasswordBytes)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}
