package plane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/store/sqlite"
	"github.com/pintle/pintle/internal/vault"
)

func vaultPath(dir string) string { return filepath.Join(dir, "secrets.key") }

// openVault opens the vault of parameters and secrets. Its key is made at the first start, also in a data directory that is older than
// vaults, but never where something was encrypted with another.
func (p *Plane) openVault() (err error) {
	path := vaultPath(p.options.Data)
	if p.vault, err = vault.Load(path, p.options.SecretsKey); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if p.State.View().HasEncrypted() {
		return fmt.Errorf("%s is missing, and with it the key of all secrets: put it back from a copy; if there is none, "+
			"pintle check --repair --data %s makes a new key, and the secrets' values are lost", path, p.options.Data)
	}
	p.vault, err = vault.Create(path, p.options.SecretsKey)
	return err
}

// checkVault checks that the key of secrets is there and can be read. A repair makes a new key. Rows are checked before: they tell whether
// there is anything that a missing key would read.
func checkVault(ctx context.Context, dir string, repair bool) ([]file.Damage, error) {
	path := vaultPath(dir)
	damage, err := vaultDamage(ctx, dir, path)
	if damage == nil || err != nil {
		return nil, err
	}
	damage.Repair = "makes a new key; the values of secrets and of SecureString parameters are lost"
	if !repair {
		return []file.Damage{*damage}, nil
	}
	damage.Repair = "a new key was made; the values of secrets and of SecureString parameters are lost"
	if err := file.Quarantine(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	_, err = vault.Create(path, nil)
	return []file.Damage{*damage}, err
}

// vaultDamage returns what is wrong with the key, or nil.
func vaultDamage(ctx context.Context, dir, path string) (*file.Damage, error) {
	if _, err := os.Stat(filepath.Join(dir, "state.db")); err != nil {
		return nil, nil // there is no state yet
	}
	err := vault.Check(path)
	if damage, is := errors.AsType[*file.Damage](err); is {
		return damage, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	encrypted, err := hasEncrypted(ctx, dir)
	if !encrypted || err != nil {
		return nil, err
	}
	return &file.Damage{Path: path, Offset: -1, What: "the file is missing, and with it the key of all secrets"}, nil
}

// hasEncrypted reports whether rows have something that only the key of secrets reads. Rows that are damaged can't tell, and their own check
// says so.
func hasEncrypted(ctx context.Context, dir string) (bool, error) {
	if damaged, err := sqlite.Check(ctx, dir, false); err != nil || len(damaged) > 0 {
		return false, err
	}
	journal, err := sqlite.Open(ctx, dir)
	if err != nil {
		return false, err
	}
	rows, err := state.Open(ctx, journal)
	if err != nil {
		return false, errors.Join(err, journal.Close())
	}
	return rows.View().HasEncrypted(), rows.Close()
}
