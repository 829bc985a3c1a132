package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"helm.sh/helm/v4/pkg/provenance"
)

// TestSign: Helm verifies the signature of the chart, like helm verify.
func TestSign(t *testing.T) {
	dir := t.TempDir()
	who, err := openpgp.NewEntity("somebody", "", "somebody@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "secret.gpg")
	file, err := os.Create(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := who.SerializePrivate(file, nil); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	found, err := Load(filepath.Join("..", "..", "..", "artifacts", "chart"))
	if err != nil {
		t.Fatal(err)
	}
	found.SetVersion("v1.2.3")
	made, err := found.Package(dir, time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Sign(made, key); err != nil {
		t.Fatal(err)
	}
	by, err := provenance.NewFromFiles(key, key)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := os.ReadFile(made + ".prov")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := by.Verify(content, signed, filepath.Base(made)); err != nil {
		t.Error(err)
	}
	if _, err := by.Verify(append(content, 0), signed, filepath.Base(made)); err == nil {
		t.Error("a changed chart is taken")
	}
	if err := CheckKey(made); err == nil || !strings.Contains(err.Error(), "gpg --export-secret-keys") {
		t.Errorf("a file that is no key: %v", err)
	}
}
