"""Certificates for tests, made by openssl."""

import toolchains

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def openssl(folder, *words):
    toolchains.run(["openssl", *map(str, words)], folder)


class Authority:
    """Signs certificates; files as PEM."""

    def __init__(self, folder):
        toolchains.require("certificates", "openssl")
        folder.mkdir()
        self.folder = folder
        openssl(folder, "req", "-x509", *KEY, "-days", 2, "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")

    def certificate(self, name, also="DNS:helenus"):
        """Makes a certificate. Returns the files of the certificate, its key and the authority's certificate. `also` are its alternative
        names.
        """
        (self.folder / "san").write_text(f"subjectAltName={also}\n")
        openssl(self.folder, "req", *KEY, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl(self.folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", 2, "-extfile", "san", "-out", f"{name}.pem")
        return {"certificate": self.folder / f"{name}.pem", "key": self.folder / f"{name}.key",
                "authority": self.folder / "ca.pem"}
