package plane

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/stacks"
)

// signalHandle takes what is sent to the URL of a wait condition's handle. Whoever has the URL may do so: on AWS it's presigned, and curl
// and cfn-signal sign nothing.
func (p *Plane) signalHandle(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		http.Error(w, "put a signal", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, stacks.MaxSignal))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	if err := p.admit("cloudformation", "SignalResource"); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	handle := strings.TrimPrefix(r.URL.Path, stacks.HandlePath)
	err = p.stacks.SignalHandle(r.Context(), handle, r.URL.Query().Get(stacks.Signature), body)
	var refused *account.Refusal
	switch {
	case errors.As(err, &refused):
		http.Error(w, refused.Code+": "+refused.Message, refused.Status)
	case err != nil:
		p.log.Error("a wait condition's signal failed", "error", err)
		http.Error(w, "the signal could not be kept", http.StatusInternalServerError)
	}
}
