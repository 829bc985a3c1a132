package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

func newFreeze(s *session.Session) *cobra.Command {
	reason := ""
	var output session.Format
	command := &cobra.Command{
		Use:   "freeze --reason WHY",
		Short: "Stop all writes of Penstock, in the whole cluster",
		Long: "Until the cluster is unfrozen, Penstock writes nothing to it: no rollout, no repair, no teardown, no run of a\n" +
			"plan. Revisions and plans can still be created, and wait. You need the right to create the ConfigMap penstock-freeze\n" +
			"in the namespace of Penstock.",
		Example: "  kubectl penstock freeze --reason \"the year ends\"",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if reason == "" {
				return outcome.Errorf(outcome.Unknown, "--reason is required: the status of every revision that waits shows it")
			}
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			return freeze(command.Context(), s, cluster, reason, output)
		},
	}
	command.Flags().StringVar(&reason, "reason", "", "Why. Required.")
	output.Add(command.Flags())
	return command
}

func freeze(ctx context.Context, s *session.Session, cluster *session.Cluster, reason string, output session.Format) error {
	path, namespace, err := freezePath(ctx, cluster)
	if err != nil {
		return err
	}
	review := &authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"}}
	if err := send(ctx, cluster, "/apis/authentication.k8s.io/v1/selfsubjectreviews", review); err != nil {
		return fmt.Errorf("asking who you are: %w", err)
	}
	author := review.Status.UserInfo.Username
	frozen := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.FreezeConfigMap, Namespace: namespace},
		Data:       map[string]string{"author": author, "reason": reason},
	}
	err = send(ctx, cluster, path, frozen)
	if apierrors.IsAlreadyExists(err) {
		raw, err := client.Raw(cluster.REST.Get().AbsPath(path, v1alpha1.FreezeConfigMap).Do(ctx))
		if err == nil {
			err = json.Unmarshal(raw, frozen)
		}
		if err != nil {
			return fmt.Errorf("the cluster is frozen already; finding out by whom: %w", err)
		}
		return outcome.Errorf(outcome.Conflict, "the cluster is frozen already, by %s: %s", frozen.Data["author"], frozen.Data["reason"])
	}
	if err != nil {
		return fmt.Errorf("freezing the cluster: %w", err)
	}
	if output != "" {
		return s.PrintObject(output, frozen)
	}
	s.Out.Para(screen.Green, screen.Good, fmt.Sprintf("frozen by %s: %s; kubectl penstock unfreeze ends it", author, reason))
	return nil
}

func newUnfreeze(s *session.Session) *cobra.Command {
	command := &cobra.Command{
		Use:     "unfreeze",
		Short:   "Allow Penstock to write again",
		Example: "  kubectl penstock unfreeze",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx := command.Context()
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			path, _, err := freezePath(ctx, cluster)
			if err != nil {
				return err
			}
			switch err := cluster.REST.Delete().AbsPath(path, v1alpha1.FreezeConfigMap).Do(ctx).Error(); {
			case apierrors.IsNotFound(err):
				s.Err.Para(screen.Dim, screen.Waiting, "the cluster is not frozen")
				return nil
			case err != nil:
				return fmt.Errorf("ending the freeze: %w", err)
			}
			s.Out.Para(screen.Green, screen.Good, "Penstock writes again")
			return nil
		},
	}
	return command
}

// printFreeze prints that the cluster is frozen, by whom and why: nothing continues until it ends.
// For users without the right to read the freeze, it prints nothing.
func printFreeze(ctx context.Context, s *session.Session, cluster *session.Cluster) {
	path, _, err := freezePath(ctx, cluster)
	if err != nil {
		return
	}
	frozen := &corev1.ConfigMap{}
	raw, err := client.Raw(cluster.REST.Get().AbsPath(path, v1alpha1.FreezeConfigMap).SetHeader("Accept", "application/json").Do(ctx))
	if err == nil {
		err = json.Unmarshal(raw, frozen)
	}
	if err != nil {
		return
	}
	s.Out.Para(screen.Yellow, screen.Notice, freezeText(frozen))
}

func freezeText(frozen *corev1.ConfigMap) string {
	said := fmt.Sprintf("frozen by %s since %s", cmp.Or(frozen.Data["author"], "somebody"), frozen.CreationTimestamp.UTC().Format(time.RFC3339))
	if reason := frozen.Data["reason"]; reason != "" {
		said += ": " + reason
	}
	return said
}

// freezePath returns the API path of the ConfigMap of a freeze, and its namespace, which is the
// APIService's.
func freezePath(ctx context.Context, cluster *session.Cluster) (path, namespace string, err error) {
	var service struct {
		Spec struct {
			Service *struct {
				Namespace string `json:"namespace"`
			} `json:"service"`
		} `json:"spec"`
	}
	name := v1alpha1.SchemeGroupVersion.Version + "." + v1alpha1.SchemeGroupVersion.Group
	raw, err := client.Raw(cluster.REST.Get().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices", name).Do(ctx))
	if err == nil {
		err = json.Unmarshal(raw, &service)
	}
	if err != nil {
		return "", "", fmt.Errorf("looking for the namespace of Penstock in APIService %s: %w", name, err)
	}
	if service.Spec.Service == nil || service.Spec.Service.Namespace == "" {
		return "", "", outcome.Errorf(outcome.Unknown, "APIService %s names no Service: it does not belong to Penstock", name)
	}
	namespace = service.Spec.Service.Namespace
	return "/api/v1/namespaces/" + namespace + "/configmaps", namespace, nil
}

// send creates an object, and stores the server's answer in it.
func send(ctx context.Context, cluster *session.Cluster, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	raw, err := client.Raw(cluster.REST.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body).Do(ctx))
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, object)
}
