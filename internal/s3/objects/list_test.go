package objects

import (
	"database/sql"
	"fmt"
	"testing"
)

// BenchmarkList lists a page of 1,000 among 60,000 objects: keys in a row, and common prefixes of few and of many keys.
func BenchmarkList(b *testing.B) {
	const total = 60_000
	for _, folder := range []int{1, 60, 6000} {
		s := newStore(b)
		fillList(b, s, total, func(i int) string { return fmt.Sprintf("folder%05d/%05d", i/folder, i) })
		for _, delimiter := range []string{"", "/"} {
			b.Run(fmt.Sprintf("folder=%d/delimiter=%q", folder, delimiter), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := s.List(b.Context(), "b", Query{Delimiter: delimiter, Limit: 1000}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// fillList puts empty objects into bucket b, in one transaction.
func fillList(t testing.TB, s *Store, n int, key func(int) string) {
	t.Helper()
	err := s.update(t.Context(), func(tx *sql.Tx) error {
		for i := range n {
			o := &Object{Bucket: "b", Key: key(i), ID: fmt.Sprint(i), Modified: s.now(), Attributes: make([]byte, 150)}
			if err := insert(tx, o); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
