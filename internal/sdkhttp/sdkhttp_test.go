package sdkhttp

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// slowEnd is a body whose end takes until it is closed, and is a failure then.
type slowEnd struct {
	io.Reader
	closed chan struct{}
}

func (b *slowEnd) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		<-b.closed
		err = errors.New("read after close")
	}
	return n, err
}

func (b *slowEnd) Close() error {
	select {
	case <-b.closed:
	default:
		close(b.closed)
	}
	return nil
}

// TestAnswerIsWhole closes a request's body when its answer has begun, as the SDK does.
func TestAnswerIsWhole(t *testing.T) {
	rest := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b, err := io.ReadAll(r.Body); err != nil || string(b) != "question" {
			t.Errorf("the server got %q, %v", b, err)
		}
		io.WriteString(w, "begin ") //nolint:errcheck // the client sees it
		w.(http.Flusher).Flush()
		<-rest
		io.WriteString(w, "end") //nolint:errcheck // the client sees it
	}))
	defer server.Close()
	body := &slowEnd{Reader: strings.NewReader("question"), closed: make(chan struct{})}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = int64(len("question"))
	answer, err := New().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	if err := r.Body.Close(); err != nil {
		t.Fatal(err)
	}
	close(rest)
	if b, err := io.ReadAll(answer.Body); err != nil || string(b) != "begin end" {
		t.Errorf("the answer is %q, %v", b, err)
	}
}
