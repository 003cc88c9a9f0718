package screen

import (
	"bytes"
	"unicode/utf8"
)

const (
	escape = 0x1b
	// maxSequence is the most bytes of an escape sequence. Longer ones are left out.
	maxSequence = 256
	// maxTabs is the most bytes of one that moves by tab stops, which the emulator counts through: a number of three digits.
	maxTabs = len("\x1b[999I")
)

// filter passes on what the emulator can bear. It leaves out strings, such as titles and palettes, which no page shows and of which the emulator
// keeps any number, and sequences through which it would count for years. A character whose other bytes are still to come it keeps back: the
// emulator would lose it.
type filter struct {
	character []byte // that isn't complete
	sequence  []byte // an escape sequence that isn't complete
	isString  bool   // what comes is of a string
}

// pass returns what the emulator is to have.
func (f *filter) pass(b []byte) (out []byte) {
	b = append(f.character, b...)
	for utf8.FullRune(b) {
		r, n := utf8.DecodeRune(b)
		out = append(out, f.take(r, b[:n])...)
		b = b[n:]
	}
	f.character = bytes.Clone(b)
	return out
}

// take takes a character and returns what is to be passed on by now.
func (f *filter) take(r rune, b []byte) []byte {
	switch {
	case r == escape: // it also ends what isn't complete
		f.isString = false
		f.sequence = append(f.sequence[:0], escape)
		return nil
	case f.isString:
		f.isString = r != '\a'
		return nil
	case len(f.sequence) == 0, r < ' ', r == 0x7f: // terminals obey control characters within sequences
		return b
	}
	f.sequence = append(f.sequence, b...)
	kind := f.sequence[1]
	f.isString = bytes.IndexByte([]byte("]P_^kX"), kind) >= 0
	if !f.isString && !f.isComplete(r) {
		return nil
	}
	done := f.sequence
	f.sequence = nil
	switch {
	case f.isString, len(done) > maxSequence, isOfCharset(kind) && kind != '(':
		return nil
	case kind == '[' && (r >= utf8.RuneSelf || len(done) > maxTabs && (r == 'I' || r == 'Z')): // the emulator looks at a character's last byte
		return nil
	}
	return done
}

// isComplete reports whether the sequence ends with a character, or is too long.
func (f *filter) isComplete(r rune) bool {
	kind := f.sequence[1]
	switch {
	case len(f.sequence) > maxSequence:
		return true
	case kind == '[':
		return len(f.sequence) > 2 && r >= '@'
	}
	return len(f.sequence) > 2 || !isOfCharset(kind)
}

// isOfCharset reports whether a sequence chooses a character set, with one more character. The emulator knows the first one alone.
func isOfCharset(kind byte) bool { return bytes.IndexByte([]byte("()*+-./%"), kind) >= 0 }
