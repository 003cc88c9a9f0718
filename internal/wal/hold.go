package wal

import (
	"os"

	"github.com/pintle/pintle/internal/backup"
)

// Hold holds the log for a backup. Until it's resumed nothing more gets on disk, so nothing is acknowledged. Until it's released no segment is
// removed. A log is only ever added to, so its files as they were are those segments up to where the marker ended, with a marker that
// says that nothing is behind it.
func (l *Log) Hold() backup.Held {
	l.filesMu.Lock()
	l.held++
	l.filesMu.Unlock()
	l.turn.Lock()
	l.marker.mu.Lock()
	at := l.marker.plate
	l.marker.mu.Unlock()
	at.flags |= flagClean
	return backup.Held{
		Resume:  l.turn.Unlock,
		Files:   func(add func(backup.File) error) error { return l.filesAt(at, add) },
		Release: l.release,
	}
}

// filesAt passes the log's files as they were with a marker.
func (l *Log) filesAt(at plate, add func(backup.File) error) error {
	if err := add(backup.File{Name: markerFile, Bytes: at.append(nil)}); err != nil {
		return err
	}
	for n := at.first; n <= at.last; n++ {
		path := segmentPath(l.dir, int(n))
		size := int64(at.end)
		if n < at.last {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			size = info.Size()
		}
		if err := add(backup.File{Name: segmentName(int(n)), Path: path, Size: size}); err != nil {
			return err
		}
	}
	return nil
}

// release removes the segments that were needed for a backup only.
func (l *Log) release() {
	l.filesMu.Lock()
	l.held--
	l.filesMu.Unlock()
	l.dropBefore(l.marker.begins()) //nolint:errcheck // the next opening removes what is left
}
