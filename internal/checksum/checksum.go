// Package checksum knows the checksums that S3 lets its clients choose: how they are made, and how those of
// parts make that of the whole, so that nothing is read twice. Wire and the object services use it; it knows
// neither of them.
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

// Algorithm is a checksum's name, as S3 has it.
type Algorithm string

// The algorithms.
const (
	CRC32     Algorithm = "CRC32"
	CRC32C    Algorithm = "CRC32C"
	CRC64NVME Algorithm = "CRC64NVME"
	SHA1      Algorithm = "SHA1"
	SHA256    Algorithm = "SHA256"
)

// Algorithms is every algorithm.
var Algorithms = []Algorithm{CRC32, CRC32C, CRC64NVME, SHA1, SHA256}

// Known says whether there is such an algorithm.
func (a Algorithm) Known() bool { return slices.Contains(Algorithms, a) }

// The polynomials of the CRCs, with the bits in the order that they are computed in.
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

// Of is the checksum that a hash has come to, as it is written.
func Of(h hash.Hash) string { return base64.StdEncoding.EncodeToString(h.Sum(nil)) }

// Valid says whether a text can be a checksum of the algorithm.
func (a Algorithm) Valid(text string) bool {
	b, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(b) == a.New().Size()
}

// Composite is the checksum of the parts' checksums, with the number of parts.
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

// Part is a stretch of the whole.
type Part struct {
	Sum  string
	Size int64
}

// Joins says whether the checksum of the whole follows from those of its parts.
func (a Algorithm) Joins() bool { return a == CRC32 || a == CRC32C || a == CRC64NVME }

// Join is the checksum of the parts one behind the other. It is for the CRCs alone.
func (a Algorithm) Join(parts []Part) (string, error) {
	width, poly := 32, uint64(crc32.IEEE)
	switch a {
	case CRC32C:
		poly = crc32.Castagnoli
	case CRC64NVME:
		width, poly = 64, nvme
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

// matrix is a linear map of bits, column by column.
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

// shift is what a CRC becomes with size zero bytes behind it: as zlib's crc32_combine, the map for one bit
// is squared to those for 2, 4, 8 … bits, and those in size are applied.
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
