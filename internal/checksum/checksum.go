// Package checksum computes the checksums that S3 lets its clients choose. It also computes an object's checksum from its parts'
// checksums, so that nothing is read twice. Wire and the object services use it. It knows neither of them.
package checksum

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"slices"
)

// Algorithm is S3's name of a checksum algorithm.
type Algorithm string

// The algorithms.
const (
	CRC32     Algorithm = "CRC32"
	CRC32C    Algorithm = "CRC32C"
	CRC64NVME Algorithm = "CRC64NVME"
	SHA1      Algorithm = "SHA1"
	SHA256    Algorithm = "SHA256"
)

// Algorithms lists all algorithms.
var Algorithms = []Algorithm{CRC32, CRC32C, CRC64NVME, SHA1, SHA256}

// Known reports whether the algorithm exists.
func (a Algorithm) Known() bool { return slices.Contains(Algorithms, a) }

// nvme is the polynomial of CRC64NVME, in reversed bit order, as it's computed.
const nvme = 0x9a6c9329ac4bc9b5

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	nvmeTable  = crc64.MakeTable(nvme)
)

// New returns the algorithm's hash.
func (a Algorithm) New() hash.Hash {
	switch a {
	case CRC32:
		return crc32.NewIEEE()
	case CRC32C:
		return crc32.New(castagnoli)
	case CRC64NVME:
		return crc64.New(nvmeTable)
	case SHA1:
		return sha1.New()
	case SHA256:
		return sha256.New()
	}
	panic("checksum: no algorithm " + string(a))
}

// Of returns a hash's current checksum, in base64.
func Of(h hash.Hash) string { return base64.StdEncoding.EncodeToString(h.Sum(nil)) }

// Valid reports whether a text can be a checksum of the algorithm.
func (a Algorithm) Valid(text string) bool {
	b, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(b) == a.New().Size()
}

// Composite returns the checksum of the parts' checksums, followed by the number of parts.
func (a Algorithm) Composite(parts []string) (string, error) {
	h := a.New()
	for _, p := range parts {
		b, err := base64.StdEncoding.DecodeString(p)
		if err != nil {
			return "", fmt.Errorf("checksum %q: %w", p, err)
		}
		h.Write(b)
	}
	return fmt.Sprintf("%s-%d", Of(h), len(parts)), nil
}

// Part is a part of an object.
type Part struct {
	Sum  string // in base64
	Size int64  // bytes
}

// Joins reports whether the checksum of the whole follows from those of its parts.
func (a Algorithm) Joins() bool { return a == CRC32 || a == CRC32C || a == CRC64NVME }

// Join returns the checksum of the concatenated parts. Only the CRCs can do that.
func (a Algorithm) Join(parts []Part) (string, error) {
	width := 32
	poly := uint64(crc32.IEEE)
	switch a {
	case CRC32C:
		poly = crc32.Castagnoli
	case CRC64NVME:
		width = 64
		poly = nvme
	case CRC32:
	default:
		return "", fmt.Errorf("%s of parts does not make that of the whole", a)
	}
	var sum uint64
	for _, p := range parts {
		b, err := base64.StdEncoding.DecodeString(p.Sum)
		if err != nil || len(b) != width/8 {
			return "", fmt.Errorf("%q is no %s", p.Sum, a)
		}
		sum = shift(sum, p.Size, poly, width) ^ binary.BigEndian.Uint64(append(make([]byte, 8-len(b)), b...))
	}
	out := binary.BigEndian.AppendUint64(nil, sum)
	return base64.StdEncoding.EncodeToString(out[8-width/8:]), nil
}

// matrix is a linear map of bits, stored by columns.
type matrix [64]uint64

func (m *matrix) times(v uint64) (out uint64) {
	for i := 0; v != 0; i, v = i+1, v>>1 {
		if v&1 != 0 {
			out ^= m[i]
		}
	}
	return out
}

func (m *matrix) squared() (out matrix) {
	for i := range m {
		out[i] = m.times(m[i])
	}
	return out
}

// shift returns the CRC of the same data followed by size zero bytes. It works like zlib's crc32_combine: it squares the map for one
// bit to get those for 2, 4, 8 and so on, and applies those that make up size.
func shift(sum uint64, size int64, poly uint64, width int) uint64 {
	var m matrix
	m[0] = poly
	for i := 1; i < width; i++ {
		m[i] = 1 << (i - 1)
	}
	for bits := size * 8; bits > 0 && sum != 0; bits >>= 1 {
		if bits&1 != 0 {
			sum = m.times(sum)
		}
		m = m.squared()
	}
	return sum
}
