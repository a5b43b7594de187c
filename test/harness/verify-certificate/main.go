// Verifies certificates with crypto/x509 and against the rules of an X.509-SVID: verify-certificate <roots> <intermediates> <leaf> <spiffe id>
package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

func must(ok bool, what string) {
	if !ok {
		fmt.Println(what)
		os.Exit(1)
	}
}

func main() {
	pool := func(path string) *x509.CertPool {
		text, _ := os.ReadFile(path)
		certificates := x509.NewCertPool()
		certificates.AppendCertsFromPEM(text)
		return certificates
	}
	text, _ := os.ReadFile(os.Args[3])
	block, _ := pem.Decode(text)
	leaf, err := x509.ParseCertificate(block.Bytes)
	must(err == nil, fmt.Sprint(err))
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err = leaf.Verify(x509.VerifyOptions{Roots: pool(os.Args[1]), Intermediates: pool(os.Args[2]), KeyUsages: []x509.ExtKeyUsage{usage}})
		must(err == nil, fmt.Sprint(err))
	}
	must(len(leaf.URIs) == 1 && leaf.URIs[0].String() == os.Args[4], fmt.Sprint("URIs: ", leaf.URIs))
	must(len(leaf.DNSNames)+len(leaf.EmailAddresses)+len(leaf.IPAddresses) == 0, "other names")
	must(leaf.BasicConstraintsValid && !leaf.IsCA, "is an authority")
	must(leaf.KeyUsage == x509.KeyUsageDigitalSignature|x509.KeyUsageKeyEncipherment, fmt.Sprint("key usage: ", leaf.KeyUsage))
	must(leaf.SerialNumber.Sign() > 0 && leaf.SerialNumber.BitLen() <= 128, "serial number")
	fmt.Println("verified")
}
