// Package accounttest has the account that the tests of all services share.
package accounttest

import (
	"time"

	"github.com/pintle/pintle/internal/account"
)

// New returns the account with a test's clock.
func New(now func() time.Time) account.Account { return account.New("000000000000", "us-east-1", now) }
