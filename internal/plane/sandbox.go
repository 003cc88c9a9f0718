package plane

import (
	"net/http"
)

// sandboxed has browsers give pages that are no part of the console an origin of their own: objects are HTML, too, and who may put one into a bucket
// would otherwise act as whoever opens it, in the console and, where no signatures are checked, at all APIs. AWS has other hosts for them.
func sandboxed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isBrowser(r.Header) {
			w = &sandbox{ResponseWriter: w}
		}
		next.ServeHTTP(w, r)
	})
}

const policyHeader = "Content-Security-Policy"

// sandbox is an answer with such a policy, unless it has one.
type sandbox struct {
	http.ResponseWriter
	begun bool
}

// Unwrap lets an http.ResponseController have the connection's own writer.
func (s *sandbox) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// WriteHeader implements http.ResponseWriter. Browsers show no PDF in a sandbox, and give its scripts no origin.
func (s *sandbox) WriteHeader(status int) {
	s.begun = true
	h := s.Header()
	if h.Get(policyHeader) == "" && h.Get("Content-Type") != "application/pdf" { // of a list, browsers take the last
		h.Set(policyHeader, "sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads")
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *sandbox) Write(b []byte) (int, error) {
	if !s.begun {
		s.WriteHeader(http.StatusOK)
	}
	return s.ResponseWriter.Write(b)
}
