/// The action to take if a file of the wanted name exists.
///
/// ```swift
/// try await container.coordinator.backup(to: file, existing: .replace)
/// ```
public enum ExistingFile: Sendable, Hashable {
    /// Throw, and leave the existing file.
    case refuse
    /// Replace the existing file in one step when the new file is complete. Processes that have the old file open keep it.
    case replace
}
