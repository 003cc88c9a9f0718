package metricstore

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
)

// A log file is a sequence of frames: the length of the payload, its CRC-32C, the payload.
const (
	frameHead = 8
	maxFrame  = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends what fill appends, framed.
func appendFrame(b []byte, fill func([]byte) []byte) []byte {
	start := len(b)
	b = fill(append(b, make([]byte, frameHead)...))
	payload := b[start+frameHead:]
	binary.LittleEndian.PutUint32(b[start:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[start+4:], crc32.Checksum(payload, castagnoli))
	return b
}

// openLog opens a file of frames for appending, hands each to visit, and cuts off what a crash has torn.
func openLog(path string, visit func(payload []byte) error) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	end, err := scan(f, visit)
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

// scan visits the frames, and returns where the good part ends.
func scan(f *os.File, visit func([]byte) error) (end int64, err error) {
	in := bufio.NewReaderSize(f, 1<<20)
	var head [frameHead]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return end, ignoreEnd(err)
		}
		length := binary.LittleEndian.Uint32(head[:])
		if length > maxFrame {
			return end, nil
		}
		payload := make([]byte, length)
		if _, err := io.ReadFull(in, payload); err != nil {
			return end, ignoreEnd(err)
		}
		if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
			return end, nil
		}
		if err := visit(payload); err != nil {
			return end, err
		}
		end += frameHead + int64(length)
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
