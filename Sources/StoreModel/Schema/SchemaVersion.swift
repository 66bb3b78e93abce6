/// The version of a model, which the developer assigns: major.minor.patch. Models without a version are 0.0.0.
///
/// ```swift
/// let model = try Model(descriptions, version: SchemaVersion(2, 1, 0))
/// ```
public struct SchemaVersion: Sendable, Hashable, Codable, Comparable, CustomStringConvertible {
    /// The first component of the version, and the most significant one.
    public var major: Int
    /// The second component of the version.
    public var minor: Int
    /// The third component of the version.
    public var patch: Int

    /// Creates a version. Without arguments, creates 0.0.0, the version of models that have none.
    public init(_ major: Int = 0, _ minor: Int = 0, _ patch: Int = 0) {
        self.major = major
        self.minor = minor
        self.patch = patch
    }

    /// Returns whether a version is older: compares major, then minor, then patch.
    public static func < (a: SchemaVersion, b: SchemaVersion) -> Bool {
        (a.major, a.minor, a.patch) < (b.major, b.minor, b.patch)
    }

    /// The version as text, such as "1.2.0".
    public var description: String { "\(major).\(minor).\(patch)" }
}
