package plane

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/stacks"
)

// answerCustom takes the answer of a custom resource's function. Whoever has the URL may give it: on AWS it's presigned.
func (p *Plane) answerCustom(w http.ResponseWriter, r *http.Request) {
	p.takeSigned(w, r, stacks.MaxAnswer, func(body []byte) error {
		id := strings.TrimPrefix(r.URL.Path, stacks.CustomPath)
		return p.stacks.AnswerCustom(r.Context(), id, r.URL.Query().Get(stacks.Signature), body)
	})
}

// signalHandle takes what is sent to the URL of a wait condition's handle. Whoever has the URL may do so: on AWS it's presigned, and curl
// and cfn-signal sign nothing.
func (p *Plane) signalHandle(w http.ResponseWriter, r *http.Request) {
	p.takeSigned(w, r, stacks.MaxSignal, func(body []byte) error {
		handle := strings.TrimPrefix(r.URL.Path, stacks.HandlePath)
		return p.stacks.SignalHandle(r.Context(), handle, r.URL.Query().Get(stacks.Signature), body)
	})
}

// takeSigned takes what is put at a URL that CloudFormation has made.
func (p *Plane) takeSigned(w http.ResponseWriter, r *http.Request, most int64, take func(body []byte) error) {
	if r.Method != http.MethodPut {
		http.Error(w, "put a signal", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	if err := p.admit("cloudformation", "SignalResource"); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	err = take(body)
	var refused *account.Refusal
	switch {
	case errors.As(err, &refused):
		http.Error(w, refused.Code+": "+refused.Message, refused.Status)
	case err != nil:
		p.log.Error("what was sent to a URL of CloudFormation's can't be kept", "error", err)
		http.Error(w, "the signal could not be kept", http.StatusInternalServerError)
	}
}
