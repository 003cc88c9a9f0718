package sns

import (
	"encoding/xml"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	"github.com/google/uuid"
)

// Path is where the links in messages lead: to the certificate, and to what a receiver may do who signs nothing.
const Path = "/pintle/sns/"

// ServeHTTP answers the links in messages. Whoever confirms a subscription has its token. Whoever ends one knows its ARN, as on AWS, and
// nobody can who hasn't signed if that was asked for when it was confirmed.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet { // whoever only looks at a link, with HEAD, confirms nothing
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	if name := strings.TrimPrefix(r.URL.Path, Path); name != "" {
		s.serveCertificate(w, r, name)
		return
	}
	form := r.URL.Query()
	switch form.Get("Action") {
	case "ConfirmSubscription":
		arn, err := s.confirm(r.Context(), form.Get("TopicArn"), form.Get("Token"), false, false)
		answer(w, linkAnswer{
			XMLName: xml.Name{Local: "ConfirmSubscriptionResponse"},
			Result:  &confirmed{SubscriptionArn: arn},
		}, err)
	case "Unsubscribe":
		err := s.unsubscribe(r.Context(), form.Get("SubscriptionArn"), false)
		answer(w, linkAnswer{XMLName: xml.Name{Local: "UnsubscribeResponse"}}, err)
	default:
		http.NotFound(w, r)
	}
}

// serveCertificate answers with the certificate of the key that signs messages.
func (s *Service) serveCertificate(w http.ResponseWriter, r *http.Request, name string) {
	if !strings.HasSuffix(name, ".pem") || s.store.View().TopicSigners.Len() == 0 {
		http.NotFound(w, r)
		return
	}
	ready, err := s.signer(r.Context())
	if err != nil || name != ready.fileName() {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/x-pem-file")
	w.Write(ready.pem()) //nolint:errcheck // nobody is left to tell if the client is gone
}

// linkAnswer is what the link's visitor gets, as SNS's API would answer.
type linkAnswer struct {
	XMLName   xml.Name
	Namespace string     `xml:"xmlns,attr"`
	Result    *confirmed `xml:"ConfirmSubscriptionResult,omitempty"`
	Error     *linkError `xml:"Error,omitempty"`
	RequestID string     `xml:"ResponseMetadata>RequestId"`
}

type confirmed struct{ SubscriptionArn string }

type linkError struct{ Type, Code, Message string }

// answer writes an answer, or the error in its place.
func answer(w http.ResponseWriter, a linkAnswer, err error) {
	status := http.StatusOK
	if err != nil {
		status = http.StatusInternalServerError
		a = linkAnswer{XMLName: xml.Name{Local: "ErrorResponse"}, Error: &linkError{"Receiver", "InternalError", "Something failed here."}}
		var refused interface {
			smithy.APIError
			HTTPStatusCode() int
		}
		if errors.As(err, &refused) {
			status = refused.HTTPStatusCode()
			a.Error = &linkError{"Sender", refused.ErrorCode(), refused.ErrorMessage()}
		}
	}
	a.Namespace = "http://sns.amazonaws.com/doc/2010-03-31/"
	a.RequestID = uuid.NewString()
	body, err := xml.Marshal(a)
	if err != nil {
		panic(err) // texts always marshal
	}
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // nobody is left to tell if the client is gone
}
