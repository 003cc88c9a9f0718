// Package efs is Amazon EFS: file systems, their access points and mount targets. A Service has the methods of the SDK's client, over the
// store. A file system is a directory of a root that the operator has made the same on all nodes; what tasks see of it is mounted there
// by their nodes, and nothing here reads or writes files in it.
package efs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// Options configure the service.
type Options struct {
	account.Account
	// Root is the directory with a directory for each file system; "" if there's none, and so can be no file systems.
	Root string
}

// Service is Amazon EFS for one account in one region.
type Service struct {
	store *state.Store
	opts  Options
}

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service { return &Service{store, opts} }

// maxAccessPoints is how many a file system may have: "Amazon EFS quotas".
const maxAccessPoints = 1000

const badRequest = "BadRequest"

func invalid(format string, args ...any) error { return account.Refuse(badRequest, format, args...) }

func noFileSystem(id string) error {
	return account.RefuseWith(http.StatusNotFound, "FileSystemNotFound", "File system '%s' does not exist.", id)
}

func noAccessPoint(id string) error {
	return account.RefuseWith(http.StatusNotFound, "AccessPointNotFound", "Access point %s does not exist.", id)
}

func noMountTarget(id string) error {
	return account.RefuseWith(http.StatusNotFound, "MountTargetNotFound", "Mount target '%s' does not exist.", id)
}

// now returns the time to the second, the precision of EFS's answers.
func (s *Service) now() *time.Time { return new(s.opts.Now().UTC().Truncate(time.Second)) }

// newID returns a random id, such as fs-0123456789abcdef0.
func newID(prefix string) string {
	var b [9]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return prefix + hex.EncodeToString(b[:])[:17]
}

// idOf returns the id that an ARN or an id names.
func (s *Service) idOf(kind string, given *string) string {
	if id, ok := s.opts.ResourceOf("elasticfilesystem", kind+"/", aws.ToString(given)); ok {
		return id
	}
	return aws.ToString(given)
}

func (s *Service) fileSystem(v *state.View, given *string) (*state.FileSystem, error) {
	id := s.idOf("file-system", given)
	f := v.FileSystems.Get(id)
	if f == nil {
		return nil, noFileSystem(id)
	}
	return f, nil
}

func (s *Service) accessPoint(v *state.View, given *string) (*state.AccessPoint, error) {
	id := s.idOf("access-point", given)
	a := v.AccessPoints.Get(id)
	if a == nil {
		return nil, noAccessPoint(id)
	}
	return a, nil
}

// change changes a file system. change gets a copy.
func (s *Service) change(ctx context.Context, given *string, change func(*state.FileSystem) error) (f state.FileSystem, err error) {
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.fileSystem(tx.View, given)
		if err != nil {
			return err
		}
		f = *old
		if err := change(&f); err != nil {
			return err
		}
		tx.FileSystems.Put(&f)
		f.NumberOfMountTargets = int32(count(tx.MountTargetsOf(*f.FileSystemId)))
		return nil
	})
	return f, err
}

func count[R any](rows func(func(R) bool)) (n int) {
	for range rows {
		n++
	}
	return n
}

// makeDirectory makes the directory of a new file system.
func (s *Service) makeDirectory(id string) error {
	if s.opts.Root == "" {
		return invalid("This control plane has no directory for file systems: start it, and its nodes, with --file-systems DIRECTORY, which " +
			"must be the same on all of them, such as an NFS export that is mounted there.")
	}
	path := filepath.Join(s.opts.Root, id)
	return errors.Join(os.Mkdir(path, 0o755), os.Chmod(path, 0o755)) // whatever the umask
}

// deletedDir has the directories of deleted file systems, below the root.
const deletedDir = "deleted"

// putAside moves the directory of a deleted file system away from where tasks look. What is in it stays, for the operator to remove: it
// may be a lot, and dear.
func (s *Service) putAside(id string) error {
	if s.opts.Root == "" {
		return nil
	}
	aside := filepath.Join(s.opts.Root, deletedDir)
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	path := filepath.Join(s.opts.Root, id)
	if os.Remove(path) == nil { // it was empty
		return nil
	}
	if err := os.Rename(path, filepath.Join(aside, id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func parts(t types.Tag) (key, value *string) { return t.Key, t.Value }

func checkTags(tags []types.Tag) error {
	if fault := account.CheckTags(account.TagPairs(tags, parts), account.MaxTags); fault != nil {
		if fault.Rule == account.TooManyTags {
			return invalid("Tags: a resource can have at most %d tags.", account.MaxTags)
		}
		return invalid("Tags: the tag %q is not valid.", fault.Key)
	}
	return nil
}

// nameIn returns the value of the tag Name, which EFS shows as the name.
func nameIn(tags []types.Tag) *string {
	for _, t := range tags {
		if aws.ToString(t.Key) == "Name" {
			return t.Value
		}
	}
	return nil
}

// page returns a page of rows in the order of their ids, which isn't nil. Markers are sealed as the tokens of other lists are.
func page[R any](kind string, rows []R, most *int32, marker *string, id func(R) string) ([]R, *string, error) {
	rows, next, err := account.Sorted(account.List{
		Kind:     "efs " + kind,
		Default:  100,
		Most:     1000,
		BadLimit: func(n int) error { return invalid("MaxItems must be from 1 to 1000, not %d.", n) },
		BadToken: func() error { return invalid("The marker is not one of an earlier answer.") },
	}, rows, most, marker, id)
	return append([]R{}, rows...), next, err
}
