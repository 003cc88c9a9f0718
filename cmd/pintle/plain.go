package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
)

// Names, reasons and logs come from tasks, which nobody trusts with a terminal. What would move its cursor, change its colors or
// hide text is shown, not obeyed.

// plain shows the characters of a text that don't print, except those in keep.
func plain(s, keep string) string {
	var out strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		isText := unicode.IsPrint(r) && (r != utf8.RuneError || n > 1)
		if isText || strings.ContainsRune(keep, r) && n == utf8.RuneLen(r) {
			out.WriteString(s[:n])
		} else {
			quoted := strconv.QuoteToASCII(s[:n])
			out.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[n:]
	}
	return out.String()
}

// plainWriter shows what doesn't print. Only tabs and line ends stay.
type plainWriter struct{ to io.Writer }

// Write implements io.Writer. Each call has whole characters.
func (w plainWriter) Write(b []byte) (int, error) {
	if _, err := io.WriteString(w.to, plain(string(b), "\n\t")); err != nil {
		return 0, err
	}
	return len(b), nil
}

// table is a table on standard output.
type table struct{ *tabwriter.Writer }

// newTable returns a table with a line of titles.
func newTable(titles ...any) table {
	t := table{tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)}
	t.row(titles...)
	return t
}

// row adds a line. Its cells are shown in one line each, whatever they hold.
func (t table) row(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			io.WriteString(t, "\t") //nolint:errcheck // Flush returns it
		}
		io.WriteString(t, plain(fmt.Sprint(c), "")) //nolint:errcheck // Flush returns it
	}
	io.WriteString(t, "\n") //nolint:errcheck // Flush returns it
}
