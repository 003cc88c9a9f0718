package objects

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Null is the version of an object that was put while its bucket kept no versions. A key has at most one.
const Null = "null"

// DeletedError says that a delete marker is in the place of an object. It's also an ErrNoObject.
type DeletedError struct {
	Marker *Object
	Named  bool // whether the call named the marker's version
}

// Error implements error.
func (e *DeletedError) Error() string { return "the object was deleted" }

// Is reports that there is no object.
func (e *DeletedError) Is(target error) bool { return target == ErrNoObject }

// versionOf returns the name of a new version. It begins with the version's sequence number, so that a list can continue after a version
// that has gone.
func versionOf(o *Object) string {
	return fmt.Sprintf("%016x%s", o.Sequence, strings.ReplaceAll(o.ID, "-", "")[:16])
}

// sequenceOf returns the sequence number of a version other than Null.
func sequenceOf(version string) (n int64, ok bool) {
	if len(version) != 32 || strings.Trim(version, "0123456789abcdef") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(version[:16], 16, 64)
	return n, err == nil
}

// IsVersion reports whether a text may name a version.
func IsVersion(text string) bool {
	_, ok := sequenceOf(text)
	return ok || text == Null
}

// olderVersion returns a version that is not the latest one of its key.
func olderVersion(ctx context.Context, q querier, bucketName, key, version string) (*Object, error) {
	const from = `SELECT ` + objectColumns + `, 0 FROM versions `
	var row *sql.Row
	if version == Null {
		row = q.QueryRowContext(
			ctx, from+`INDEXED BY null_versions WHERE bucket = ? AND key = ? AND version = 'null'`, bucketName, []byte(key),
		)
	} else {
		n, _ := sequenceOf(version) // there is no number 0
		row = q.QueryRowContext(
			ctx, from+`WHERE bucket = ? AND key = ? AND sequence = ? AND version = ?`, bucketName, []byte(key), n, version,
		)
	}
	o, err := scanObject(row.Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNoVersion
	}
	return o, err
}

// makeRoom makes room for a new latest version. The present one becomes an older one, or is removed if the new one replaces it: a bucket
// that keeps no versions has one null version of a key. It returns the names of files that nothing uses any more.
func makeRoom(ctx context.Context, tx *sql.Tx, b *Bucket, latest *Object, key string) (gone []string, err error) {
	if latest == nil {
		return nil, nil
	}
	if !b.KeepsVersions() {
		if latest.Version == Null {
			return drop(tx, latest)
		}
		null, err := olderVersion(ctx, tx, b.Name, key, Null)
		if err != nil && !errors.Is(err, ErrNoVersion) {
			return nil, err
		}
		if gone, err = drop(tx, null); err != nil {
			return nil, err
		}
	}
	return gone, exec(tx, []any{b.Name, []byte(key)},
		`INSERT INTO versions (`+objectColumns+`) SELECT `+objectColumns+` FROM objects WHERE bucket = ? AND key = ?`,
		`DELETE FROM objects WHERE bucket = ? AND key = ?`)
}

// remove removes a version, and makes the one before it the latest if it was that. It returns the names of its files.
func remove(tx *sql.Tx, o *Object) (gone []string, err error) {
	if gone, err = drop(tx, o); err != nil || !o.Latest {
		return gone, err
	}
	return gone, promote(tx, o.Bucket, o.Key)
}

// promote makes the newest of the older versions the latest one, for a key that has none.
func promote(tx *sql.Tx, bucketName, key string) error {
	return exec(tx, []any{bucketName, []byte(key)},
		`INSERT INTO objects (`+objectColumns+`) SELECT `+objectColumns+` FROM versions WHERE bucket = ? AND key = ?
			ORDER BY sequence DESC LIMIT 1`,
		`DELETE FROM versions WHERE bucket = ?1 AND key = ?2
			AND sequence = (SELECT sequence FROM objects WHERE bucket = ?1 AND key = ?2)`)
}
