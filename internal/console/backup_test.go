package console

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/wire/call"
)

// TestBackupIsTheOwners: nobody but the account's owner gets an archive, and a page of another site can't ask for one.
func TestBackupIsTheOwners(t *testing.T) {
	c := New(nil, nil, Options{Backup: func(to io.Writer) error {
		_, err := to.Write([]byte("all secrets"))
		return err
	}})
	for _, who := range []call.Identity{
		{Principal: "arn:aws:iam::000000000000:user/somebody"},
		{Principal: "arn:aws:iam::000000000000:user/node/x", Node: true},
		{Principal: "arn:aws:sts::000000000000:assumed-role/r/s", Task: "task", Role: "r"},
	} {
		w := httptest.NewRecorder()
		ownersOnly(c.serveBackup)(call.With(t.Context(), call.Call{Identity: who}), w, nil)
		if w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "secrets") {
			t.Errorf("%v gets %d %s", who, w.Code, w.Body)
		}
	}
	for method, code := range map[string]int{http.MethodGet: http.StatusUnsupportedMediaType, http.MethodPost: http.StatusOK} {
		r := httptest.NewRequest(method, BackupPath, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		c.Handlers()[BackupPath].ServeHTTP(w, r)
		if w.Code != code {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}

// TestBackupThatFails: before the first byte it's a refusal, and afterwards a trailer says why the archive ends.
func TestBackupThatFails(t *testing.T) {
	for _, begun := range []bool{false, true} {
		c := New(nil, nil, Options{Backup: func(to io.Writer) error {
			if begun {
				to.Write([]byte("a beginning")) //nolint:errcheck // what follows fails
			}
			return errors.New("a disk that fails")
		}})
		server := httptest.NewServer(c.Handlers()[BackupPath])
		resp, err := http.Post(server.URL, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		told := resp.Trailer.Get(BackupFailed)
		if !begun {
			told = string(bytes.TrimSpace(b))
		}
		if err != nil || (resp.StatusCode == http.StatusOK) != begun || told != "a disk that fails" {
			t.Errorf("begun %v: %d, %q, %v", begun, resp.StatusCode, told, err)
		}
		resp.Body.Close() //nolint:errcheck // it was read
		server.Close()
	}
}
