package file

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
)

// sealPrefix begins the line below a sealed file's JSON, which has the CRC-32C of all above it.
const sealPrefix = "\ncrc32c "

// WriteSealed replaces a file by a value and its checksum, durably.
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

// ReadSealed reads a value from a file. One that does not hold what was written is a *Damage.
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

// Unseal returns what was sealed, and reports whether it is whole.
func Unseal(b []byte) ([]byte, bool) {
	end := bytes.LastIndex(b, []byte(sealPrefix))
	if end < 0 || !bytes.Equal(b, Seal(bytes.Clone(b[:end]))) {
		return nil, false
	}
	return b[:end], true
}
