package file

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
)

// sealPrefix starts the last line of a sealed file, which holds the CRC-32C of everything above it.
const sealPrefix = "\ncrc32c "

// WriteSealed replaces a file's content by a value and its checksum; durable is as for Replace.
func WriteSealed(path string, v any, durable bool) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return Replace(path, Seal(b), durable)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal appends a line with a checksum.
func Seal(b []byte) []byte {
	return fmt.Appendf(b, "%s%08x\n", sealPrefix, crc32.Checksum(b, castagnoli))
}

// ReadSealed reads a value from a sealed file. If the file doesn't hold what was written, the error is a *Damage.
func ReadSealed(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b, ok := Unseal(b)
	if !ok {
		return &Damage{Path: path, Offset: 0, What: "fails its checksum"}
	}
	return json.Unmarshal(b, v)
}

// Unseal returns the content without its seal, and reports whether it is intact.
func Unseal(b []byte) ([]byte, bool) {
	end := bytes.LastIndex(b, []byte(sealPrefix))
	if end < 0 || !bytes.Equal(b, Seal(bytes.Clone(b[:end]))) {
		return nil, false
	}
	return b[:end], true
}
