package console

import (
	"context"
	"io"
	"net/http"

	"github.com/pintle/pintle/internal/wire/steady"
)

// BackupPath is where the account's owner gets an archive of all that is kept.
const BackupPath = "/pintle/backup"

// BackupFailed is the trailer that says why an archive ends before its end.
const BackupFailed = "Pintle-Backup-Failed"

// serveBackup answers with an archive. It has all secrets, so nobody but the owner gets it.
func (c *Console) serveBackup(_ context.Context, w http.ResponseWriter, _ []byte) {
	out := &archive{to: w, steady: steady.NewWriter(w, http.NewResponseController(w))}
	err := c.opts.Backup(out)
	switch {
	case err != nil && !out.begun:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		w.Header().Set(BackupFailed, err.Error())
	}
}

// archive is an answer's body, of which it isn't known beforehand whether there is any.
type archive struct {
	to     http.ResponseWriter
	steady io.Writer
	begun  bool
}

func (a *archive) Write(b []byte) (int, error) {
	if !a.begun {
		a.begun = true
		a.to.Header().Set("Content-Type", "application/x-tar")
		a.to.Header().Set("Cache-Control", "no-store")
		a.to.Header().Set("Trailer", BackupFailed)
	}
	return a.steady.Write(b)
}
