package metrics

import (
	"errors"
	"io"
	"os"

	"github.com/pintle/pintle/internal/file"
)

// openFrames opens a file of frames for appending, hands each to visit, and cuts off what a crash has torn.
func openFrames(path string, visit func(payload []byte) error) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	end, err := file.ReadFrames(f, func(payload []byte, _ int64) error { return visit(payload) })
	if err == nil {
		err = f.Truncate(end)
	}
	if err == nil {
		_, err = f.Seek(end, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
