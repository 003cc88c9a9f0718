package plane

import (
	"context"
	cryptorand "crypto/rand"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"

	"github.com/pintle/pintle/internal/file"
)

// keySize is the length of the key that task credentials are made with. In the key's file, its SHA-256 follows it.
const keySize = 32

func keyPath(dir string) string { return filepath.Join(dir, "task.key") }

// taskKey returns the key that task credentials are made with. The key is made once, before there is any other state, and never
// changes.
func taskKey(dir string) ([]byte, error) {
	b, err := os.ReadFile(keyPath(dir))
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, "state.db")); err == nil {
			return nil, &file.Damage{Path: keyPath(dir), Offset: -1, What: "the file is missing"}
		}
		return makeTaskKey(dir)
	}
	if err != nil {
		return nil, err
	}
	if len(b) != keySize+sha256.Size || sha256.Sum256(b[:keySize]) != [sha256.Size]byte(b[keySize:]) {
		return nil, &file.Damage{Path: keyPath(dir), Offset: 0, What: "the key fails its checksum"}
	}
	return b[:keySize], nil
}

func makeTaskKey(dir string) ([]byte, error) {
	key := make([]byte, keySize)
	cryptorand.Read(key) // never fails
	sum := sha256.Sum256(key)
	// replaced whole: with half a key no later start would succeed
	if err := file.Replace(keyPath(dir), append(key[:keySize:keySize], sum[:]...), true); err != nil {
		return nil, err
	}
	return key, file.SyncDir(dir)
}

// checkTaskKey checks the key for damage. A repair makes a new key.
func checkTaskKey(_ context.Context, dir string, repair bool) ([]file.Damage, error) {
	if _, err := os.Stat(filepath.Join(dir, "state.db")); err != nil {
		return nil, nil // there is no state yet
	}
	_, err := taskKey(dir)
	var damage *file.Damage
	if !errors.As(err, &damage) {
		return nil, err
	}
	damage.Repair = "makes a new key; the credentials that running tasks have end, and nodes that joined with a token must join again"
	if repair {
		damage.Repair = "a new key was made; the credentials that running tasks have end, and nodes that joined with a token must join again"
		_, err = makeTaskKey(dir)
		return []file.Damage{*damage}, err
	}
	return []file.Damage{*damage}, nil
}
