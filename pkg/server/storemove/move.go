package storemove

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/pkg/server/registration"
	"github.com/penstock-project/penstock/pkg/server/storeguard"
	"github.com/penstock-project/penstock/pkg/store/identity"
)

// Move takes a store from a data directory into a cluster.
type Move struct {
	// Config is an administrator's client configuration for the cluster. Namespace contains the
	// witness.
	Config    *rest.Config
	Namespace string
	// DataDir is the data directory of the ended process.
	DataDir string
	// Report is called after each step.
	Report func(what string)
}

// Begin prepares the store for an installation in the cluster. It can be repeated:
//
//  1. Read the store and its witness. Only the store that the witness expects is moved.
//  2. Put a snapshot into Secrets.
//  3. Remove the registration, so that no request waits for an installation that does not start.
//  4. Make the witness expect the copy. From here the copy is the store.
//
// The data directory is locked meanwhile, and is not changed.
func (m Move) Begin(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(m.Config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	stopped, err := database.OpenStopped(ctx, m.DataDir)
	if err != nil {
		return err
	}
	defer stopped.Close()
	configMaps := client.CoreV1().ConfigMaps(m.Namespace)
	mark, err := storeguard.ReadMark(ctx, configMaps, m.Namespace)
	if err != nil {
		return err
	}
	observed, err := identity.NewStore(stopped.Client, database.Prefix).Observe(ctx)
	if err != nil {
		return err
	}
	carried := secrets{api: client.CoreV1().Secrets(m.Namespace), partBytes: partBytes}
	if begun, err := m.begun(ctx, carried, observed, mark); begun || err != nil {
		return err
	}
	if err := m.notInstalled(ctx, client); err != nil {
		return err
	}
	snapshot := filepath.Join(m.DataDir, "moving.db")
	// The snapshot contains the Secrets of all revisions. After a crash the next run overwrites it.
	defer func() { _ = os.Remove(snapshot) }()
	if err := stopped.Save(ctx, snapshot); err != nil {
		return err
	}
	next := *mark
	next.Epoch = observed.Epoch + 1
	parcel, err := carried.put(ctx, snapshot, observed.ID, next.Epoch)
	if err != nil {
		return err
	}
	next.Moved = parcel.Digest
	m.Report(fmt.Sprintf("store %s is in %d Secret(s) of namespace %s", observed.ID, parcel.Parts, m.Namespace))
	err = registration.Withdraw(ctx, m.Config, m.Namespace, registration.Versions(), func(what string) { m.Report(what + " deleted") })
	if err != nil {
		return err
	}
	return storeguard.ReplaceMark(ctx, configMaps, m.Namespace, *mark, next)
}

// begun reports whether an earlier Begin was completed. It returns an error for a store that must
// not be moved.
func (m Move) begun(ctx context.Context, carried secrets, observed identity.Observed, mark *identity.Mark) (bool, error) {
	if mark == nil {
		return false, fmt.Errorf("the cluster does not know this store: namespace %s has no ConfigMap %s; is this the cluster that penstock serve was registered in?", m.Namespace, storeguard.WitnessName)
	}
	verdict := identity.Judge(observed, mark)
	switch {
	case verdict.Serve():
		return false, nil
	case observed.ID != mark.StoreID || observed.Epoch >= mark.Epoch:
		return false, errors.New(verdict.Reason)
	}
	found, there, err := carried.find(ctx)
	switch {
	case err != nil:
		return false, err
	case !there || !found.isExpected(mark):
		return false, fmt.Errorf("the store was moved already: %s", verdict.Reason)
	}
	m.Report("an earlier run has put the store into the cluster")
	return true, nil
}

// notInstalled returns an error if an installation runs: it looks for a moved store only when it
// starts.
func (m Move) notInstalled(ctx context.Context, client kubernetes.Interface) error {
	found, err := client.AppsV1().Deployments(m.Namespace).Get(ctx, registration.ServiceName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for an installation: %w", err)
	case found.Status.Replicas == 0:
		return nil
	}
	return fmt.Errorf("deployment %s/%s runs already: kubectl delete deployment %s --namespace %s, then run the command again, which installs it again", m.Namespace, found.Name, found.Name, m.Namespace)
}

// End removes the Secrets. Call it after the installation has begun to serve the store.
func (m Move) End(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(m.Config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	carried := secrets{api: client.CoreV1().Secrets(m.Namespace)}
	found, there, err := carried.find(ctx)
	if err != nil {
		return err
	}
	mark, err := storeguard.ReadMark(ctx, client.CoreV1().ConfigMaps(m.Namespace), m.Namespace)
	if err != nil {
		return err
	}
	if there && (mark == nil || mark.StoreID != found.StoreID || mark.Epoch != found.Epoch) {
		return errors.New("the installation serves another store than the one that was moved: the Secrets and the data directory stay")
	}
	return carried.remove(ctx)
}

// Arrive restores the store that the witness expects into a data directory, if Secrets contain it.
// The store in the directory must be empty. stop ends the process that has the store open.
func Arrive(ctx context.Context, config *rest.Config, namespace, dataDir string, stop func()) (arrived bool, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return false, fmt.Errorf("connecting to the cluster: %w", err)
	}
	mark, err := storeguard.ReadMark(ctx, client.CoreV1().ConfigMaps(namespace), namespace)
	if err != nil || mark == nil {
		return false, err
	}
	carried := secrets{api: client.CoreV1().Secrets(namespace), partBytes: partBytes}
	found, there, err := carried.find(ctx)
	if err != nil || !there || !found.isExpected(mark) {
		return false, err
	}
	snapshot := filepath.Join(dataDir, "moved.db")
	// The snapshot contains the Secrets of all revisions. After a crash the next run overwrites it.
	defer func() { _ = os.Remove(snapshot) }()
	if err := carried.take(ctx, found, snapshot); err != nil {
		return false, err
	}
	stop()
	if err := database.Discard(dataDir); err != nil {
		return false, err
	}
	_, err = database.Restore(ctx, snapshot, dataDir)
	return err == nil, err
}
