package console

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"
)

// pictures is the folder of the pictures in docs.
const pictures = "../../docs/console"

// picture writes the content of the window, without loss.
func (p *page) picture(name string) {
	p.t.Helper()
	var raw []byte
	p.run(chromedp.CaptureScreenshot(&raw))
	full, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		p.t.Fatalf("reading a picture: %v", err)
	}
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&small, indexed(full)); err != nil {
		p.t.Fatalf("writing a picture: %v", err)
	}
	if err := os.MkdirAll(pictures, 0o750); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pictures, name+".png"), small.Bytes(), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// mostColours is the maximum number of colours of a picture with a palette.
const mostColours = 256

// indexed returns the picture with a palette, which is smaller. A picture with too many colours is
// returned unchanged.
func indexed(full image.Image) image.Image {
	known, palette := map[color.RGBA]uint8{}, color.Palette{}
	bounds := full.Bounds()
	out := image.NewPaletted(bounds, nil)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			one := color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)
			index, is := known[one]
			if !is {
				if len(palette) == mostColours {
					return full
				}
				index = uint8(len(palette))
				known[one], palette = index, append(palette, one)
			}
			out.SetColorIndex(x, y, index)
		}
	}
	out.Palette = palette
	return out
}
