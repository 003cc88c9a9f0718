package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/backup"
	"github.com/pintle/pintle/internal/console"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/plane"
)

type backupCmd struct {
	endpointFlags
	Data string
	To   string
}

func (c *backupCmd) define(f flags) {
	c.endpointFlags.define(f)
	f.path(&c.Data, "data", "DIRECTORY", "", "Data directory of a control plane that is stopped, instead of asking one that runs.")
}

func (c *backupCmd) verb() *cobra.Command {
	cmd := newVerb(
		"backup [flags] FILE|DIRECTORY|-", "Back up everything that a control plane keeps, while it runs.",
		argument(&c.To, "a file, a directory, or - for the standard output"), c.Run,
	)
	cmd.Long = "The archive has everything that was acknowledged before the backup began. It also has every secret and key, so keep it where only " +
		"its owner can read it. pintle restore makes a data directory of it."
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run makes an archive, and reads it while it's written: only one that is whole gets its name.
func (c *backupCmd) Run(ctx context.Context) error {
	to, err := c.create()
	if err != nil {
		return err
	}
	about, err := c.write(ctx, to)
	if to.failure != nil {
		err = to.failure // what was read then ends too early, which is no news
	}
	if err == nil {
		err = to.finish()
	}
	if err != nil {
		return errors.Join(err, to.abandon())
	}
	fmt.Fprintf(os.Stderr, "%s: %s, made by pintle %s. It has secrets and keys: keep it as safe as the data directory.\n", //nolint:errcheck // as for everything that we print
		to.path, units.BytesSize(float64(to.size)), about.Version)
	return nil
}

// write has the archive written and read.
func (c *backupCmd) write(ctx context.Context, to *output) (about backup.About, err error) {
	from, failed, err := c.open(ctx)
	if err != nil {
		return about, err
	}
	progress := newProgress("backed up")
	defer progress.end()
	both := io.TeeReader(from, io.MultiWriter(to, progress))
	about, err = backup.Read(both, func(string, int64, io.Reader) error { return nil })
	_, rest := io.Copy(io.Discard, both)
	err = errors.Join(err, rest, from.Close())
	if why := failed(); why != nil {
		return about, why
	}
	return about, err
}

// open returns the archive as it comes, and what says at its end why it isn't whole.
func (c *backupCmd) open(ctx context.Context) (io.ReadCloser, func() error, error) {
	if c.Data != "" {
		return c.openDirectory()
	}
	config, err := awsConfig(c.Endpoint)
	if err != nil {
		return nil, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Endpoint+console.BackupPath, bytes.NewReader([]byte("{}")))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if err := signPintle(ctx, config, r, []byte("{}")); err != nil {
		return nil, nil, err
	}
	resp, err := config.HTTPClient.Do(r)
	if err != nil {
		return nil, nil, notReached(err)
	}
	if resp.StatusCode != http.StatusOK {
		_, err := readAnswer(resp)
		return nil, nil, errors.Join(err, resp.Body.Close())
	}
	return resp.Body, func() error {
		if why := resp.Trailer.Get(console.BackupFailed); why != "" {
			return fmt.Errorf("the control plane could not go on: %s", why)
		}
		return nil
	}, nil
}

// openDirectory makes the archive of a directory that nobody uses.
func (c *backupCmd) openDirectory() (io.ReadCloser, func() error, error) {
	if err := checkStores(c.Data); err != nil {
		return nil, nil, err
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		buffered := bufio.NewWriterSize(w, 1<<20)
		err := plane.BackupDirectory(c.Data, buffered, backup.About{Version: version, Made: time.Now().UTC()})
		err = errors.Join(err, buffered.Flush())
		if errors.Is(err, file.ErrLocked) {
			err = fmt.Errorf("%w; or leave --data out, and the control plane makes the backup while it runs", err)
		}
		w.CloseWithError(err) //nolint:errcheck // it never fails
		done <- err
	}()
	return r, func() error { return <-done }, nil
}

// output is where an archive goes.
type output struct {
	*os.File
	path    string // "" for the standard output
	size    int64
	failure error // of writing
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.File.Write(b)
	o.size += int64(n)
	o.failure = cmp.Or(o.failure, err)
	return n, err
}

// create creates the archive's file under another name, which nobody else can read. It never replaces a file.
func (c *backupCmd) create() (*output, error) {
	if c.To == "-" {
		return &output{File: os.Stdout, path: "standard output"}, nil
	}
	path := expand(c.To)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, time.Now().UTC().Format("pintle-20060102T150405Z.tar"))
	}
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("%s exists already", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), file.Unfinished+"*")
	if err != nil {
		return nil, fmt.Errorf("%s can't be written: %w", path, errors.Unwrap(err))
	}
	return &output{File: f, path: path}, nil
}

// finish gives a whole archive its name, durably, unless somebody else has made a file of that name meanwhile.
func (o *output) finish() error {
	if o.File == os.Stdout {
		return nil
	}
	if err := errors.Join(o.Sync(), o.Close()); err != nil {
		return err
	}
	if err := unix.Renameat2(unix.AT_FDCWD, o.Name(), unix.AT_FDCWD, o.path, unix.RENAME_NOREPLACE); err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	return file.SyncDir(filepath.Dir(o.path))
}

// abandon removes what is not whole.
func (o *output) abandon() error {
	if o.File == os.Stdout {
		return nil
	}
	o.Close() //nolint:errcheck // it's removed
	return os.Remove(o.Name())
}

type restoreCmd struct {
	Data        string
	From        string
	Check       bool
	KeepDamaged bool
}

func (c *restoreCmd) define(f flags) {
	f.path(&c.Data, "data", "DIRECTORY", "~/.pintle", "Data directory to make, which must be empty or not be there.")
	f.BoolVar(&c.Check, "check", false, "Only read the archive, and say whether it's whole.")
	f.BoolVar(&c.KeepDamaged, "keep-damaged", false, "Restore what was damaged already when the backup was made, too, so that pintle check can repair it.")
}

func (c *restoreCmd) verb() *cobra.Command {
	cmd := newVerb(
		"restore [flags] FILE|-", "Make a data directory of an archive of pintle backup.",
		argument(&c.From, "an archive, or - for the standard input"), c.Run,
	)
	cmd.Long = "Nothing is put in its place before all of the archive was read and every file in it was checked. Don't run the restored control " +
		"plane beside the one that the archive is of: both would tell the same nodes what to do."
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run restores, or only reads.
func (c *restoreCmd) Run(ctx context.Context) error {
	in := os.Stdin
	if c.From != "-" {
		f, err := os.Open(expand(c.From))
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it was read only
		in = f
	}
	progress := newProgress("read")
	defer progress.end()
	from := bufio.NewReaderSize(io.TeeReader(in, progress), 1<<20)
	if c.Check {
		about, err := backup.Read(from, func(string, int64, io.Reader) error { return ctx.Err() })
		progress.end()
		if err == nil {
			fmt.Fprintf(plainWriter{os.Stdout}, "The archive is whole: made by pintle %s at %s.\n", about.Version, about.Made.Format(time.RFC3339)) //nolint:errcheck // as above
		}
		return err
	}
	about, damage, err := plane.Restore(ctx, from, c.Data, c.KeepDamaged)
	progress.end()
	printDamage(os.Stdout, damage, false)
	if err != nil {
		return err
	}
	c.say(plainWriter{os.Stdout}, about)
	return nil
}

// say says what to do with what was restored. Commands are copied into shells, so they have nothing of an archive's that is no plain name.
func (c *restoreCmd) say(to io.Writer, about backup.About) {
	fmt.Fprintf(to, "%s is as it was at %s.\n", c.Data, about.Made.Format(time.RFC3339)) //nolint:errcheck // as for everything that we print
	if isPlainName(about.Region) && isPlainName(about.Account) {
		fmt.Fprintf(to, "Start it with:  pintle serve --data %s --region %s --account %s, and the other flags that it had.\n", c.Data, about.Region, about.Account) //nolint:errcheck // as above
	}
}

func isPlainName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && s[0] != '-'
}

// progress says on a terminal how far something is.
type progress struct {
	what  string
	size  int64
	said  time.Time
	began time.Time
	shown bool
	quiet bool
}

func newProgress(what string) *progress {
	_, err := unix.IoctlGetWinsize(int(os.Stderr.Fd()), unix.TIOCGWINSZ)
	return &progress{what: what, began: time.Now(), quiet: err != nil}
}

// Write counts bytes.
func (p *progress) Write(b []byte) (int, error) {
	p.size += int64(len(b))
	if now := time.Now(); !p.quiet && now.Sub(p.said) > 200*time.Millisecond {
		p.said, p.shown = now, true
		seconds := cmp.Or(now.Sub(p.began).Seconds(), 1)
		fmt.Fprintf(os.Stderr, "\r\033[K%s %s, %s/s", units.BytesSize(float64(p.size)), p.what, units.BytesSize(float64(p.size)/seconds)) //nolint:errcheck // as for everything that we print
	}
	return len(b), nil
}

// end takes the line back.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(os.Stderr, "\r\033[K") //nolint:errcheck // as above
	}
	p.shown, p.quiet = false, true
}
