#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Decoding of the model in Core Data's files, for fuzzing. Few damaged databases would lead to it.
@_spi(Fuzzing) public enum ModelBytes {
    /// Returns whether the content of the table `Z_MODELCACHE` is a model.
    public static func isModel(_ cache: [UInt8]) -> Bool { CoreDataModel(cache: Data(cache)) != nil }
}
