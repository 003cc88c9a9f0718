package refusal

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/aws/smithy-go"
)

// failure is a service's error with a status of the server's.
type failure struct {
	smithy.GenericAPIError
	status int
}

func (f *failure) HTTPStatusCode() int { return f.status }

// TestIsOurs: the log has what is wrong with Pintle, and not what callers do, nor each try to reach what isn't there yet.
func TestIsOurs(t *testing.T) {
	server := smithy.GenericAPIError{Code: "X", Fault: smithy.FaultServer}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"a bug":         {errors.New("x"), true},
		"a server's":    {&failure{server, http.StatusInternalServerError}, true},
		"a refusal":     {New("X", "no"), false},
		"not there yet": {&failure{server, http.StatusBadGateway}, false},
	} {
		if got := IsOurs(t.Context(), c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if IsOurs(gone, errors.New("x")) {
		t.Error("a caller that hung up is logged")
	}
}
