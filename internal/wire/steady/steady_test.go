package steady

import (
	"io"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// drip is a body that gives some bytes after each pause. It doesn't know deadlines, so a test looks at the credit.
type drip struct {
	bytes int
	pause time.Duration
}

func (d drip) Read(p []byte) (int, error) {
	time.Sleep(d.pause)
	return min(d.bytes, len(p)), nil
}

func (d drip) Close() error { return nil }

// TestPace: a body may pause, but not for ever, and it may be slow, but not slower than its rate.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		name    string
		body    drip
		relaxed bool
		want    bool // whether it still has time after an hour
	}{
		{"a byte each five seconds", drip{1, 5 * time.Second}, false, false},
		{"slower than a call's rate", drip{15 << 10, time.Second}, false, false},
		{"a call's rate", drip{16 << 10, time.Second}, false, true},
		{"a call's rate in bursts", drip{16 * 16 << 10, 16 * time.Second}, false, true},
		{"an object on a slow line", drip{2 << 10, time.Second}, true, true},
		{"a stalled object", drip{1, 30 * time.Second}, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := httptest.NewRequest("PUT", "/", c.body)
			Watch(httptest.NewRecorder(), r)
			if c.relaxed {
				Relax(r)
			}
			body := r.Body.(*Body)
			for began := time.Now(); time.Since(began) < time.Hour && body.credit > 0; {
				if _, err := io.ReadFull(body, make([]byte, c.body.bytes)); err != nil {
					t.Fatal(err)
				}
			}
			if (body.credit > 0) != c.want {
				t.Errorf("%s has %s left", c.name, body.credit)
			}
		})
	}
}

// TestThinkingIsFree: time that the server takes between two reads isn't the client's.
func TestThinkingIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := httptest.NewRequest("PUT", "/", drip{1, 0})
		Watch(httptest.NewRecorder(), r)
		for range 10 {
			time.Sleep(time.Minute)
			if _, err := r.Body.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if credit := r.Body.(*Body).credit; credit < Call.Pause-time.Second {
			t.Errorf("%s are left", credit)
		}
	})
}

// TestEndUnread: only a body that wasn't read to its end costs the connection.
func TestEndUnread(t *testing.T) {
	for body, want := range map[string]string{"": "", "abc": "close"} {
		r := httptest.NewRequest("PUT", "/", nil)
		if body != "" {
			r.ContentLength = int64(len(body))
		}
		w := httptest.NewRecorder()
		Watch(w, r)
		if EndUnread(w, r); w.Header().Get("Connection") != want {
			t.Errorf("%q: %v", body, w.Header())
		}
		io.Copy(io.Discard, r.Body) //nolint:errcheck // nothing to read
		w = httptest.NewRecorder()
		if EndUnread(w, r); w.Header().Get("Connection") != "" {
			t.Errorf("%q, read: %v", body, w.Header())
		}
	}
}
