package app

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// trialTimeout limits how long the first self-test may delay the controllers.
const trialTimeout = 5 * time.Second

// trialBackoff returns the backoff between self-tests that gave no result.
func trialBackoff() wait.Backoff {
	return wait.Backoff{Duration: 2 * time.Second, Factor: 2, Jitter: 0.2, Steps: 9, Cap: 5 * time.Minute}
}

// tester is a target cluster that can be tested. *targetclient.Client implements it.
type tester interface {
	SelfTest(ctx context.Context) error
	UsePosts()
}

// selfTest tests which guarantees the target cluster gives. Without a result, Penstock still works:
// it creates objects by POST, which works everywhere and costs a second request for each object. If
// a retry may help, selfTest returns a function that retries until there is a result. Otherwise it
// returns nil.
func selfTest(ctx context.Context, targetClient tester, backoff wait.Backoff) func(context.Context) error {
	first, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	if trial(first, targetClient) {
		return nil
	}
	return func(ctx context.Context) error {
		delay := backoff.DelayFunc()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(delay()):
			}
			if trial(ctx, targetClient) {
				return nil
			}
		}
	}
}

// trial runs one self-test. It returns true if no retry is needed.
func trial(ctx context.Context, targetClient tester) (settled bool) {
	err := targetClient.SelfTest(ctx)
	if err == nil {
		return true
	}
	targetClient.UsePosts()
	log := klog.FromContext(ctx)
	var untestable *targetclient.UntestableError
	if errors.As(err, &untestable) {
		log.Error(err, "Create-only apply cannot be tried out in the target cluster; every object is created with two requests instead of one. "+
			"To change that, allow Penstock to list and patch ConfigMaps in kube-system: it only makes dry-runs there")
		return true
	}
	log.Error(err, "It is not known yet whether create-only apply works in the target cluster; trying again, and creating objects with two requests until then")
	return false
}
