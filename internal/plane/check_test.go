package plane

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/file"
)

func openIn(t *testing.T, dir string) (*Plane, error) {
	t.Helper()
	p, err := Open(t.Context(), Options{
		Data:    dir,
		Region:  "us-east-1",
		Account: "000000000000",
		Lost:    time.Minute,
		Settle:  time.Minute,
		Log:     slog.Default(),
	})
	if err == nil {
		t.Cleanup(func() { p.Close() })
	}
	return p, err
}

// TestCheck: damage keeps a control plane from starting, and the error says what to do. A check finds the damage, and after a
// repair the control plane starts. Nothing is checked while a control plane runs.
func TestCheck(t *testing.T) {
	for _, name := range []string{"task.key", "state.db", "objects/index.db", "queues/000000001.log", "metrics/manifest"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p, err := openIn(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.SQS.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("queue")}); err != nil {
				t.Fatal(err)
			}
			if _, err := p.S3.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("bucket")}); err != nil {
				t.Fatal(err)
			}
			if _, err := Check(t.Context(), dir, true); !errors.Is(err, file.ErrLocked) {
				t.Errorf("a check while it runs: %v", err)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if damage, err := Check(t.Context(), dir, false); err != nil || len(damage) > 0 {
				t.Fatalf("of a whole directory: %v, %v", damage, err)
			}
			path := filepath.Join(dir, name)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/2] ^= 4
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = openIn(t, dir)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "run: pintle check --data "+dir) {
				t.Errorf("it starts with %v", err)
			}
			for _, repair := range []bool{false, true} {
				damage, err := Check(t.Context(), dir, repair)
				if err != nil || len(damage) != 1 || damage[0].Path != path || damage[0].Repair == "" {
					t.Errorf("the check finds %v, %v", damage, err)
				}
			}
			if p, err = openIn(t, dir); err != nil {
				t.Fatal(err)
			}
			if _, err := p.S3.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("bucket")}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCheckNothing: checking a directory that doesn't exist is an error.
func TestCheckNothing(t *testing.T) {
	if _, err := Check(context.Background(), filepath.Join(t.TempDir(), "none"), false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestOwnersAlone: only the owner can read a data directory, even if it existed before with other permissions.
func TestOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := openIn(t, dir); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		seen++
		return err
	})
	if err != nil || seen < 10 {
		t.Errorf("%d files, %v", seen, err)
	}
}

// TestSetAside: what was there is kept under another name, unless a control plane is using it.
func TestSetAside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if aside, err := SetAside(dir, time.Now()); aside != "" || err != nil {
		t.Errorf("nothing became %q, %v", aside, err)
	}
	p, err := openIn(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := SetAside(dir, time.Now()); !errors.Is(err, file.ErrLocked) {
		t.Errorf("while it runs: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	aside, err := SetAside(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(aside, "state.db")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}
