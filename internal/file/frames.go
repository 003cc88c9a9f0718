package file

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// A log that is appended to is a sequence of frames: the length of the payload, its CRC-32C, the payload. A frame
// counts as a whole or not at all.
const (
	FrameHead = 8        // bytes before the payload
	maxFrame  = 64 << 20 // what says it is longer is torn
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// AppendFrame appends what fill appends, framed.
func AppendFrame(b []byte, fill func([]byte) []byte) []byte {
	start := len(b)
	b = fill(append(b, make([]byte, FrameHead)...))
	payload := b[start+FrameHead:]
	binary.LittleEndian.PutUint32(b[start:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[start+4:], crc32.Checksum(payload, castagnoli))
	return b
}

// ReadFrames hands each frame's payload to visit, which must not keep it, with the frame's offset. It returns where
// the good part ends: behind it there is nothing, or what a crash has torn.
func ReadFrames(r io.Reader, visit func(payload []byte, offset int64) error) (end int64, err error) {
	in := bufio.NewReaderSize(r, 1<<20)
	var head [FrameHead]byte
	var buf []byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return end, ignoreEnd(err)
		}
		length := int(binary.LittleEndian.Uint32(head[:]))
		if length > maxFrame {
			return end, nil
		}
		if cap(buf) < length {
			buf = make([]byte, length)
		}
		payload := buf[:length]
		if _, err := io.ReadFull(in, payload); err != nil {
			return end, ignoreEnd(err)
		}
		if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
			return end, nil
		}
		if err := visit(payload, end); err != nil {
			return end, err
		}
		end += int64(FrameHead + length)
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
