package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// PullSecrets reads credentials from a file, from the pull secrets of a ServiceAccount, and from
// one global Secret. If several have one registry, the last in this order wins. It reads them for
// each pull, so that it needs no watch; pulls within moments share one read. It is safe for
// concurrent use.
type PullSecrets struct {
	Client kubernetes.Interface
	// ServiceAccount is the ServiceAccount whose pull secrets are used. It need not exist.
	ServiceAccount types.NamespacedName
	// Global is a Secret for all catalogs; empty for none.
	Global types.NamespacedName
	// Path is a file in the format of docker's config.json; empty for none.
	Path string
	// Dir is the folder for the credentials file of a pull.
	Dir string
	// Clock is the clock; nil means the system's clock.
	Clock clock.PassiveClock

	// mu is held during a read. A concurrent caller gets the same result.
	mu    sync.Mutex
	known *auths
	// until is the time at which known expires.
	until time.Time
}

// knownFor is how long credentials that were read without an error are reused. Otherwise each of
// many extensions that are installed together would cost these requests.
const knownFor = 2 * time.Second

var _ Credentials = &PullSecrets{}

// auths holds the used fields of such a file.
type auths struct {
	Auths map[string]json.RawMessage `json:"auths"`
}

// File implements Credentials. The file has every readable secret. The error names the unreadable
// secrets.
func (p *PullSecrets) File(ctx context.Context) (string, func(), error) {
	merged, failed := p.read(ctx)
	if len(merged.Auths) == 0 {
		return "", func() {}, failed
	}
	path, err := p.write(merged)
	if err != nil {
		return "", func() {}, errors.Join(failed, err)
	}
	return path, func() { _ = os.Remove(path) }, failed
}

// read returns all credentials, and the errors of unreadable secrets.
func (p *PullSecrets) read(ctx context.Context) (*auths, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now
	if p.Clock != nil {
		now = p.Clock.Now
	}
	if p.known != nil && now().Before(p.until) {
		return p.known, nil
	}
	merged, err := p.readAll(ctx)
	p.known, p.until = nil, now().Add(knownFor)
	if err == nil {
		p.known = merged
	}
	return merged, err
}

func (p *PullSecrets) readAll(ctx context.Context) (*auths, error) {
	merged := &auths{Auths: map[string]json.RawMessage{}}
	var failed []error
	add := func(what string, content []byte, err error) {
		var one auths
		switch {
		case err != nil:
			failed = append(failed, err)
		case json.Unmarshal(content, &one) != nil:
			// The decoder's error may quote a secret.
			failed = append(failed, fmt.Errorf("%s is no JSON in the format of docker's config.json", what))
		default:
			maps.Copy(merged.Auths, one.Auths)
		}
	}
	if p.Path != "" {
		content, err := os.ReadFile(p.Path)
		add("the file "+p.Path, content, err)
	}
	names, err := p.ofServiceAccount(ctx)
	if err != nil {
		failed = append(failed, err)
	}
	if p.Global.Name != "" {
		names = append(names, p.Global)
	}
	for _, name := range names {
		content, err := p.secret(ctx, name)
		add("Secret "+name.String(), content, err)
	}
	return merged, errors.Join(failed...)
}

func (p *PullSecrets) ofServiceAccount(ctx context.Context) ([]types.NamespacedName, error) {
	account, err := p.Client.CoreV1().ServiceAccounts(p.ServiceAccount.Namespace).Get(ctx, p.ServiceAccount.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // this process runs outside of a cluster
	}
	if err != nil {
		return nil, fmt.Errorf("reading ServiceAccount %s for its pull secrets: %w", p.ServiceAccount, err)
	}
	var names []types.NamespacedName
	for _, one := range account.ImagePullSecrets {
		names = append(names, types.NamespacedName{Namespace: p.ServiceAccount.Namespace, Name: one.Name})
	}
	return names, nil
}

// secret reads a pull secret in either of the two formats.
func (p *PullSecrets) secret(ctx context.Context, name types.NamespacedName) ([]byte, error) {
	found, err := p.Client.CoreV1().Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading pull secret %s: %w", name, err)
	}
	if content, ok := found.Data[corev1.DockerConfigJsonKey]; ok {
		return content, nil
	}
	content, ok := found.Data[corev1.DockerConfigKey]
	if !ok {
		return nil, fmt.Errorf("pull secret %s has neither %s nor %s", name, corev1.DockerConfigJsonKey, corev1.DockerConfigKey)
	}
	return fmt.Appendf(nil, `{"auths":%s}`, content), nil
}

func (p *PullSecrets) write(merged *auths) (string, error) {
	content, err := json.Marshal(merged)
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp(p.Dir, "auth-*.json") // readable only by its owner
	if err != nil {
		return "", fmt.Errorf("writing credentials for a pull: %w", err)
	}
	if _, err := file.Write(content); err != nil {
		return "", errors.Join(fmt.Errorf("writing credentials for a pull: %w", err), file.Close(), os.Remove(file.Name()))
	}
	return file.Name(), file.Close()
}
