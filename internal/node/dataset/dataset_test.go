package dataset

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// bucket is a store of objects that counts what it's asked.
type bucket struct {
	mu      sync.Mutex
	objects map[string]string
	etags   map[string]string // other than the MD5
	gets    []string          // key and range
	cut     int               // after how many bytes a transfer breaks off; 0 is never
	during  func(ctx context.Context, key string)
	denied  error // what HeadObject and GetObject answer
}

func newBucket(objects map[string]string) *bucket {
	return &bucket{objects: objects, etags: map[string]string{}}
}

func (b *bucket) etag(key string) string {
	if e := b.etags[key]; e != "" {
		return e
	}
	sum := md5.Sum([]byte(b.objects[key]))
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

var written = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (b *bucket) ListObjectsV2(_ context.Context, in *s3.ListObjectsV2Input, _ ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := &s3.ListObjectsV2Output{EncodingType: in.EncodingType}
	for _, key := range slices.Sorted(maps.Keys(b.objects)) {
		if strings.HasPrefix(key, *in.Prefix) {
			out.Contents = append(out.Contents, types.Object{
				Key: aws.String(listed(key, in.EncodingType)), ETag: aws.String(b.etag(key)), Size: aws.Int64(int64(len(b.objects[key]))), LastModified: &written,
			})
		}
	}
	return out, nil
}

// listed is a key as a list in XML shows it, which has no control characters unless they are encoded.
func listed(key string, encoding types.EncodingType) string {
	if encoding == types.EncodingTypeUrl {
		return url.QueryEscape(key)
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return '\uFFFD'
		}
		return r
	}, key)
}

func status(code int) error {
	return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: code}}, Err: errors.New(http.StatusText(code))}
}

// find returns an object, or the error that S3 has. The caller holds mu.
func (b *bucket) find(key, etag *string) (string, error) {
	text, ok := b.objects[*key]
	switch {
	case b.denied != nil:
		return "", b.denied
	case !ok:
		return "", status(http.StatusNotFound)
	case *etag != b.etag(*key):
		return "", status(http.StatusPreconditionFailed)
	}
	return text, nil
}

func (b *bucket) HeadObject(_ context.Context, in *s3.HeadObjectInput, _ ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.find(in.Key, in.IfMatch); err != nil {
		return nil, err
	}
	return &s3.HeadObjectOutput{}, nil
}

func (b *bucket) GetObject(ctx context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.during != nil {
		b.mu.Unlock()
		b.during(ctx, *in.Key)
		b.mu.Lock()
	}
	text, err := b.find(in.Key, in.IfMatch)
	if err != nil {
		return nil, err
	}
	b.gets = append(b.gets, strings.TrimSpace(*in.Key+" "+aws.ToString(in.Range)))
	out := &s3.GetObjectOutput{ETag: in.IfMatch}
	if in.Range != nil {
		from := 0
		if _, err := fmt.Sscanf(*in.Range, "bytes=%d-", &from); err != nil {
			return nil, err
		}
		out.ContentRange = aws.String(fmt.Sprintf("bytes %d-%d/%d", from, len(text)-1, len(text)))
		text = text[from:]
	}
	var body io.Reader = strings.NewReader(text)
	if b.cut > 0 && len(text) > b.cut {
		body = io.MultiReader(strings.NewReader(text[:b.cut]), failing{})
	}
	out.Body = io.NopCloser(body)
	return out, nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

func open(t *testing.T, dir string, budget int64) *Cache {
	t.Helper()
	c, err := Open(dir, budget, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var all = Source{Bucket: "b"}

// read returns the files below a directory with their content.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func provide(t *testing.T, c *Cache, client Client, s Source, name string) {
	t.Helper()
	if err := c.Provide(t.Context(), client, s, name); err != nil {
		t.Fatal(err)
	}
}

func TestParse(t *testing.T) {
	for uri, want := range map[string]Source{
		"s3://b":      {"b", ""},
		"s3://b/":     {"b", ""},
		"s3://b/p":    {"b", "p/"},
		"s3://b/p/q/": {"b", "p/q/"},
		"s3:///p":     {},
		"/b/p":        {},
	} {
		if got, err := Parse(uri); got != want || (err == nil) != (want != Source{}) {
			t.Errorf("%s is %v, %v; want %v", uri, got, err, want)
		}
	}
}

// TestAnyName: keys that XML can't hold, or that look encoded, are names like others.
func TestAnyName(t *testing.T) {
	want := map[string]string{"red\x1b[31m": "1", "a+b c%20d": "2", "\u00e4/\x01": "3"}
	objects := map[string]string{}
	for name, text := range want {
		objects["m/"+name] = text
	}
	c := open(t, t.TempDir(), 0)
	provide(t, c, newBucket(objects), Source{"b", "m/"}, "me/t/v")
	if got := read(t, c.Path("me/t/v")); !maps.Equal(got, want) {
		t.Errorf("the directory has %q, want %q", got, want)
	}
}

func TestADirectoryShowsThePrefix(t *testing.T) {
	b := newBucket(map[string]string{"m/": "", "m/a": "one", "m/sub/b": "two", "m/none/": "", "m/empty": "", "more/c": "three"})
	c := open(t, t.TempDir(), 0)
	provide(t, c, b, Source{"b", "m/"}, "me/t/v")
	want := map[string]string{"a": "one", "sub/b": "two", "empty": ""}
	if got := read(t, c.Path("me/t/v")); !maps.Equal(got, want) {
		t.Errorf("the directory has %v, want %v", got, want)
	}
	info, err := os.Stat(c.Path("me/t/v/a"))
	if err != nil || info.Mode() != 0o444 || !info.ModTime().Equal(written) {
		t.Errorf("a file is %v, %v, %v", info.Mode(), info.ModTime(), err)
	}
	if info, err := os.Stat(c.Path("me/t/v/none")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("an empty directory is %v, %v", info, err)
	}
	if got := c.Figures(); got != (Figures{Fetched: 6, Size: 6}) {
		t.Errorf("the cache says %+v", got)
	}
	if err := c.Provide(t.Context(), b, Source{"b", "typo/"}, "me/t/w"); err == nil || !strings.Contains(err.Error(), "no object under s3://b/typo/") {
		t.Errorf("a prefix without objects: %v", err)
	}
}

// Ten tasks that want the same weights at once fetch them once.
func TestConcurrentTasksShareAFetch(t *testing.T) {
	b := newBucket(map[string]string{"a": strings.Repeat("a", 100), "b/c": "c"})
	dir := t.TempDir()
	caches := []*Cache{open(t, dir, 0), open(t, dir, 0)} // of two processes
	var tasks sync.WaitGroup
	for i := range 10 {
		tasks.Go(func() { provide(t, caches[i%2], b, all, fmt.Sprintf("me/%d/v", i)) })
	}
	tasks.Wait()
	if len(b.gets) != 2 {
		t.Errorf("it took %v", b.gets)
	}
	for i := range 10 {
		if got := read(t, caches[0].Path(fmt.Sprintf("me/%d/v", i))); !maps.Equal(got, b.objects) {
			t.Errorf("task %d has %v", i, got)
		}
	}
}

func TestWhoMayNotReadGetsNothingFromTheCache(t *testing.T) {
	b := newBucket(map[string]string{"a": "secret"})
	c := open(t, t.TempDir(), 0)
	provide(t, c, b, all, "me/1/v")
	stranger := newBucket(b.objects)
	stranger.denied = status(http.StatusForbidden)
	err := c.Provide(t.Context(), stranger, all, "me/2/v")
	if err == nil || !strings.Contains(err.Error(), "s3://b/a: ") || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("the refusal is %v", err)
	}
	if _, err := os.Stat(c.Path("me/2/v")); !os.IsNotExist(err) {
		t.Errorf("the stranger's directory is there: %v", err)
	}
	// Nor where another has fetched all but the end, or all, and was killed.
	lost := newBucket(map[string]string{"a": "secret"})
	c = open(t, t.TempDir(), 0)
	part := object{bucket: "b", key: "a", etag: lost.etag("a"), size: 6}
	if err := os.WriteFile(filepath.Join(c.dir, part.partial()), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Provide(t.Context(), stranger, all, "me/2/v"); err == nil {
		t.Error("the stranger got what another had fetched")
	}
}

// A fetch goes on where a killed agent's ended, and nothing is seen before all is there.
func TestAFetchIsResumed(t *testing.T) {
	text := strings.Repeat("0123456789", 10)
	b := newBucket(map[string]string{"a": text, "b": "small"})
	b.cut = 30
	dir := t.TempDir()
	c := open(t, dir, 0)
	ctx, kill := context.WithCancel(t.Context())
	b.during = func(context.Context, string) {
		if _, err := os.Stat(c.Path("me/t/v")); !os.IsNotExist(err) {
			t.Errorf("a directory is seen before it's whole: %v", err)
		}
		if slices.Contains(b.gets, "a bytes=30-") {
			kill()
		}
	}
	if err := c.Provide(ctx, b, all, "me/t/v"); err == nil {
		t.Fatal("the fetch ended before it was killed")
	}
	b.during, b.gets = nil, nil
	c = open(t, dir, 0)
	provide(t, c, b, all, "me/t/v")
	if len(b.gets) == 0 || !strings.HasPrefix(b.gets[0], "a bytes=") || b.gets[len(b.gets)-1] != "a bytes=90-" {
		t.Errorf("it went on with %v", b.gets)
	}
	if got := read(t, c.Path("me/t/v")); !maps.Equal(got, b.objects) {
		t.Errorf("the directory has %v", got)
	}
	if left, err := os.ReadDir(filepath.Join(dir, partialDir)); len(left) > 0 || err != nil {
		t.Errorf("%v is left: %v", left, err)
	}
}

func TestWrongContentIsRefused(t *testing.T) {
	for name, change := range map[string]func(*bucket){
		"by its ETag": func(b *bucket) { b.etags["a"] = `"00112233445566778899aabbccddeeff"` },
		"by its length": func(b *bucket) {
			b.during = func(context.Context, string) { b.etags["a"], b.objects["a"] = b.etag("a"), "longer" }
		},
	} {
		b := newBucket(map[string]string{"a": "text"})
		change(b)
		c := open(t, t.TempDir(), 0)
		if err := c.Provide(t.Context(), b, all, "me/t/v"); !errors.Is(err, errWrong) {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(c.entries()); n > 0 && c.entries()[0].size > 0 {
			t.Errorf("%s: it's kept", name)
		}
	}
	parts := newBucket(map[string]string{"a": "text"}) // whose ETag is of its parts
	parts.etags["a"] = `"00112233445566778899aabbccddeeff-2"`
	provide(t, open(t, t.TempDir(), 0), parts, all, "me/t/v")
}

func TestAnObjectThatChanges(t *testing.T) {
	b := newBucket(map[string]string{"a": "old"})
	c := open(t, t.TempDir(), 0)
	provide(t, c, b, all, "me/1/v")
	var once sync.Once
	b.objects = map[string]string{"a": "new"}
	b.during = func(context.Context, string) { once.Do(func() { b.objects["a"] = "newest" }) }
	provide(t, c, b, all, "me/2/v")
	if got := read(t, c.Path("me")); got["1/v/a"] != "old" || got["2/v/a"] != "newest" {
		t.Errorf("the directories have %v", got)
	}
}

func TestKeysThatAreNoPaths(t *testing.T) {
	for _, keys := range [][]string{
		{"../a"}, {"a/../../b"}, {".."}, {"/etc/passwd"}, {"a//b"}, {"a/./b"}, {"."}, {"a\x00b"}, {strings.Repeat("a", 256)}, {"a/b//"},
		{"a", "a/b"}, {"a/b", "a/b/c/d"}, {"a/b", "a/b/"},
	} {
		b := newBucket(map[string]string{})
		for _, k := range keys {
			b.objects[k] = strings.Trim(k[len(k)-1:], "/") // what ends with a slash is empty
		}
		dir := t.TempDir()
		c := open(t, filepath.Join(dir, "cache"), 0)
		err := c.Provide(t.Context(), b, all, "me/t/v")
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", keys[0])) {
			t.Errorf("%q: %v", keys, err)
		}
		if len(b.gets) > 0 || len(read(t, dir)) > 0 {
			t.Errorf("%q: it fetched %q and left %v", keys, b.gets, read(t, dir))
		}
	}
	b := newBucket(map[string]string{"a b/ü\n\\": "1", "a/..b": "2", "a.": "3", "-": "4"})
	c := open(t, t.TempDir(), 0)
	provide(t, c, b, all, "me/t/v")
	if got := read(t, c.Path("me/t/v")); !maps.Equal(got, b.objects) {
		t.Errorf("odd names become %q", got)
	}
}

func TestTheBudget(t *testing.T) {
	b := newBucket(map[string]string{"old/1": "aaaaa", "old/2": "bbbbb", "new/1": "ccccc", "big/1": strings.Repeat("d", 11)})
	c := open(t, t.TempDir(), 15)
	provide(t, c, b, Source{"b", "old/"}, "me/1/v")
	provide(t, c, b, Source{"b", "new/"}, "me/2/v")
	err := c.Provide(t.Context(), b, Source{"b", "big/"}, "me/3/v")
	if err == nil || !strings.Contains(err.Error(), "11B are needed, but the cache of data sets may have 15B, of which running tasks hold 15B") {
		t.Errorf("with all mounted: %v", err)
	}
	if err := c.Remove("me/1"); err != nil {
		t.Fatal(err)
	}
	c.root.Chtimes((&object{bucket: "b", key: "old/2", etag: b.etag("old/2"), size: 5}).stored(), time.Now().Add(-time.Hour), written)
	b.objects["more/1"] = "eeeee"
	provide(t, c, b, Source{"b", "more/"}, "me/4/v")
	b.gets = nil
	provide(t, c, b, Source{"b", "more/"}, "me/5/v")
	if _, err := os.Stat(filepath.Join(c.dir, (&object{bucket: "b", key: "old/1", etag: b.etag("old/1"), size: 5}).stored())); err != nil {
		t.Errorf("what was used last went first: %v", err)
	}
	if f := c.Figures(); f.Size != 15 || len(b.gets) > 0 {
		t.Errorf("the cache has %+v, and fetched %v", f, b.gets)
	}
	if got := read(t, c.Path("me/2/v")); got["1"] != "ccccc" {
		t.Errorf("a running task's directory has %v", got)
	}
}

// A partial fetch that nobody goes on with takes no room from others.
func TestLeftPartsGo(t *testing.T) {
	b := newBucket(map[string]string{"a": "aaaaa"})
	c := open(t, t.TempDir(), 8)
	left := filepath.Join(c.dir, partialDir, strings.Repeat("0", 64))
	if err := os.WriteFile(left, bytes.Repeat([]byte("x"), 6), 0o600); err != nil {
		t.Fatal(err)
	}
	provide(t, c, b, all, "me/t/v")
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("it's still there: %v", err)
	}
}

func TestATouchedObjectIsFetchedAnew(t *testing.T) {
	b := newBucket(map[string]string{"a": "good"})
	c := open(t, t.TempDir(), 0)
	provide(t, c, b, all, "me/1/v")
	path := c.Path("me/1/v/a")
	if err := errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, []byte("evil"), 0o644), os.Chmod(path, 0o444)); err != nil {
		t.Fatal(err)
	}
	provide(t, c, b, all, "me/2/v")
	if got := read(t, c.Path("me/2/v")); got["a"] != "good" {
		t.Errorf("another task has %v", got)
	}
}

func TestNamesAndRemove(t *testing.T) {
	b := newBucket(map[string]string{"a": "a"})
	c := open(t, t.TempDir(), 0)
	provide(t, c, b, all, "me/1/v")
	provide(t, c, b, all, "me/2/v")
	if err := errors.Join(c.Remove("me/1"), c.Remove("me/none")); err != nil {
		t.Error(err)
	}
	if names, err := c.Names("me"); !slices.Equal(names, []string{"2"}) || err != nil {
		t.Errorf("left are %v, %v", names, err)
	}
	if names, err := c.Names("nobody"); names != nil || err != nil {
		t.Errorf("nobody has %v, %v", names, err)
	}
}
