package console

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/chromedp/chromedp"
)

// pictures is where screens are shown to people.
const pictures = "../../docs/console"

// picture writes what the window shows, in the colours that it has most of: text has many shades
// that nobody sees.
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
	if err := encoder.Encode(&small, reduced(full)); err != nil {
		p.t.Fatalf("writing a picture: %v", err)
	}
	if err := os.MkdirAll(pictures, 0o750); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pictures, name+".png"), small.Bytes(), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// mostColours is how many a picture keeps.
const mostColours = 160

func reduced(full image.Image) image.Image {
	count := map[color.RGBA]int{}
	bounds := full.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	kept := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return cmp.Compare(count[b], count[a]) })
	palette := color.Palette{}
	for _, one := range kept[:min(mostColours, len(kept))] {
		palette = append(palette, one)
	}
	out := image.NewPaletted(bounds, palette)
	nearest := map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			one := at(x, y)
			index, known := nearest[one]
			if !known {
				index = uint8(palette.Index(one))
				nearest[one] = index
			}
			out.SetColorIndex(x, y, index)
		}
	}
	return out
}
