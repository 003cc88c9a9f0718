package checksum

import (
	"encoding/base64"
	"encoding/hex"
	"testing"

	"pgregory.net/rapid"
)

// TestKnown uses the CRC catalogue's check values for "123456789", and FIPS 180's for "abc".
func TestKnown(t *testing.T) {
	for _, c := range []struct {
		algorithm Algorithm
		text, hex string
	}{
		{CRC32, "123456789", "cbf43926"},
		{CRC32C, "123456789", "e3069283"},
		{CRC64NVME, "123456789", "ae8b14860a799888"},
		{SHA1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
		{SHA256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	} {
		h := c.algorithm.New()
		h.Write([]byte(c.text))
		if got := hex.EncodeToString(h.Sum(nil)); got != c.hex {
			t.Errorf("%s of %q is %s, want %s", c.algorithm, c.text, got, c.hex)
		}
		if !c.algorithm.Valid(Of(h)) || c.algorithm.Valid("AAA=") || c.algorithm.Valid("?") {
			t.Errorf("%s: valid takes the wrong texts", c.algorithm)
		}
	}
}

// TestJoin cuts random bytes anywhere. The parts' checksums must give the checksum of the whole.
func TestJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom([]Algorithm{CRC32, CRC32C, CRC64NVME}).Draw(t, "algorithm")
		whole := a.New()
		var parts []Part
		for _, b := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 300)).Draw(t, "parts") {
			whole.Write(b)
			h := a.New()
			h.Write(b)
			parts = append(parts, Part{Of(h), int64(len(b))})
		}
		if got, err := a.Join(parts); err != nil || got != Of(whole) {
			t.Fatalf("%s joins to %s (%v), want %s", a, got, err, Of(whole))
		}
	})
}

func TestComposite(t *testing.T) {
	h := SHA256.New()
	inner := h.Sum(nil)
	h.Write(inner)
	got, err := SHA256.Composite([]string{base64.StdEncoding.EncodeToString(inner)})
	if want := Of(h) + "-1"; err != nil || got != want {
		t.Errorf("composite is %s (%v), want %s", got, err, want)
	}
	if _, err := SHA256.Join(nil); err == nil {
		t.Error("SHA-256 cannot be joined")
	}
	if _, err := CRC32.Join([]Part{{"AAA=", 1}}); err == nil {
		t.Error("a short CRC was joined")
	}
}
