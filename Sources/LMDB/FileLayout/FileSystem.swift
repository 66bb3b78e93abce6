internal import CLMDB
internal import Platform

/// The file system that contains a file.
public enum FileSystem {
    /// Returns the kind of a file system whose locks or maps do not work across machines or drivers; nil for a local file
    /// system.
    public static func remoteKind(ofFolder path: String) -> String? {
        var status = statfs()
        guard statfs(path, &status) == 0 else { return nil }
        return remoteKind(status)
    }

    private static func remoteKind(_ status: statfs) -> String? {
        #if os(Linux)
            remoteKinds[UInt32(truncatingIfNeeded: status.f_type)]
        #else
            status.f_flags & UInt32(MNT_LOCAL) == 0 ? "a network file system" : nil
        #endif
    }

    /// The kinds by their numbers in statfs(2).
    package static let remoteKinds: [UInt32: String] = [
        0x6969: "nfs", 0xFF53_4D42: "cifs", 0xFE53_4D42: "smb2", 0x517B: "smb", 0x6573_5546: "fuse", 0x0102_1997: "9p",
        0x00C3_6400: "ceph", 0x5346_414F: "afs", 0x6B41_4653: "afs", 0x7375_7245: "coda", 0x564C: "ncp",
        0x0BD0_0BD0: "lustre", 0x4750_4653: "gpfs",
    ]
}
