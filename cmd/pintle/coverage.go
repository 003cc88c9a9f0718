package main

import (
	"context"
	"fmt"

	"github.com/pintle/pintle/internal/plane"
)

// coverage prints docs/coverage.md.
func coverage(context.Context) error {
	text, err := plane.Coverage()
	if err != nil {
		return err
	}
	fmt.Print(text)
	return nil
}
