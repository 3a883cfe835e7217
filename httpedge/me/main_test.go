package me_test

import (
	"os"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

const (
	ada      = "ada@example.com"
	idaPhone = "+14155550123"
)

func TestMain(m *testing.M) { os.Exit(stacktest.Run(m, nil)) }
