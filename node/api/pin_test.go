package api

import (
	"errors"
	"net/http"
	"testing"
)

func TestPinAndConfirmOverTheSocket(t *testing.T) {
	b := &fake{pinned: PinResult{Problem: "not on offer"}, served: VersionInfo{Number: 17}}
	c, _ := start(t, socket(t), "", b)
	number, epoch, other := uint64(17), uint64(5), uint64(18)
	r, err := c.Pin(t.Context(), VersionRequest{Number: &number, Epoch: &epoch})
	if err != nil || *r.Pin != (Pin{Number: 17, Epoch: 5}) || r.Problem != "not on offer" {
		t.Errorf("pin: got %+v, %v", r, err)
	}
	if r, err := c.Pinned(t.Context()); err != nil || r.Pin == nil || r.Pin.Number != 17 {
		t.Errorf("pinned: got %+v, %v", r, err)
	}
	if r, err := c.Unpin(t.Context()); err != nil || r.Pin != nil {
		t.Errorf("unpin: got %+v, %v", r, err)
	}
	if r, err := c.Confirm(t.Context(), VersionRequest{Number: &number}); err != nil || r.Served.Number != 17 {
		t.Errorf("confirm: got %+v, %v", r, err)
	}
	var e *Error
	if _, err := c.Confirm(t.Context(), VersionRequest{Number: &other}); !errors.As(err, &e) || e.Code != http.StatusConflict || e.Hint == "" {
		t.Errorf("confirm of another: got %#v", err)
	}
}
