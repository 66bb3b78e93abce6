import LMDB
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

/// The right to save, shared between the processes that use one file. A process that acknowledges saves before they are in
/// the file prevents other processes from committing until they are (S067).
///
/// The rights are locks on two bytes beyond the end of the signal file. The locks belong to the open file, not to the
/// process: closing another descriptor does not release them, and they end with the process. A claim is acquired in two
/// steps, first the turn, then the right. A waiting process therefore comes before a process that claims again.
final class SaveClaims: Sendable {
    private enum Byte: Int {
        /// Locked while waiting for ``right``.
        case turn = 0x4000_0000
        /// Shared by processes that commit; exclusive for a process that holds saves back.
        case right = 0x4000_0001
    }

    private let path: String
    private let storePath: String
    private let timeout: Duration
    /// The signal file, opened at the first claim.
    private let open = Mutex<StoreFile.Opened?>(nil)
    /// The offset in the signal file of the id of the process that holds saves back.
    private static let holderOffset = 8
    /// The offset of the id of the process that has the turn and waits for the right.
    private static let waiterOffset = 12

    init(signalPath: String, storePath: String, timeout: Duration) {
        path = signalPath
        self.storePath = storePath
        self.timeout = timeout
    }

    /// Closes the file until the next use. Its locks are released when the last claim has ended.
    func end() { open.withLock { $0 = nil } }

    /// Acquires a claim.
    /// - Parameter check: A closure called while another process has a conflicting claim. An error that it throws ends the wait.
    func claim(_ kind: SaveClaimKind, whileWaiting check: () throws -> Void = {}) throws -> any SaveClaim {
        let opened = try opened()
        let file = opened.file
        let deadline = ContinuousClock.now + timeout
        try wait(file, .turn, exclusively: true, until: deadline, check: check)
        defer { Self.unlock(file, .turn) }
        try wait(file, .right, exclusively: kind == .holdingBack, until: deadline, check: check)
        if kind == .holdingBack { Self.name(CurrentProcess.identifier, in: file, at: Self.holderOffset) }
        return Claim(opened, kind)
    }

    /// Calls `body` when another process waits.
    func watchRequests(_ body: @escaping @Sendable () -> Void) throws -> any StoreWatch {
        _ = try opened()
        return try FileWatch(path: path, for: .attributes, restore: { [weak self] in _ = try self?.opened() }, body)
    }

    private final class Claim: SaveClaim {
        private let opened: StoreFile.Opened
        private let kind: SaveClaimKind
        /// A forked child shares the lock: unlocking it there would release the parent's lock.
        private let owner = CurrentProcess.identifier
        private let isHeld = Atomic(true)

        init(_ opened: StoreFile.Opened, _ kind: SaveClaimKind) {
            self.opened = opened
            self.kind = kind
        }

        deinit { release() }

        var isWanted: Bool { SaveClaims.isLockedElsewhere(opened.file, .turn) }

        func release() {
            guard isHeld.exchange(false, ordering: .acquiringAndReleasing), CurrentProcess.identifier == owner else { return }
            if kind == .holdingBack { SaveClaims.name(0, in: opened.file, at: SaveClaims.holderOffset) }
            SaveClaims.unlock(opened.file, .right)
        }
    }

    private func opened() throws -> StoreFile.Opened {
        try open.withLock { open in
            // A lock on a removed or replaced file no longer excludes other processes.
            if let known = open, known.isAt(path) { return known }
            let made = StoreFile.Opened(try StoreFile.openBeside(path, of: storePath))
            open = made
            return made
        }
    }

    // MARK: Waiting

    private func wait(
        _ file: OpenFile, _ byte: Byte, exclusively: Bool, until deadline: ContinuousClock.Instant, check: () throws -> Void
    ) throws {
        var pause: UInt32 = 50
        var tries = 0
        while !(try lock(file, byte, exclusively: exclusively)) {
            if tries == 0, byte == .right { Self.name(CurrentProcess.identifier, in: file, at: Self.waiterOffset) }
            try check()
            guard ContinuousClock.now < deadline else { throw busy(file, byte) }
            // Repeated, because the holder may have begun to watch only now. Changes the file's times, which wakes the
            // holder.
            if tries % 64 == 0 { try? file.touch() }
            tries += 1
            CurrentThread.sleep(microseconds: pause)
            pause = min(pause * 2, 1000)
        }
    }

    private func busy(_ file: OpenFile, _ byte: Byte) -> StoreError {
        var cause = "another process saves, or holds saves that are not in the file yet, and did not end"
        if let holder = Self.process(in: file, at: Self.holderOffset) {
            cause = "process \(holder) holds saves that are not in the file yet, and did not write them"
        } else if byte == .turn, let waiter = Self.process(in: file, at: Self.waiterOffset) {
            cause = "process \(waiter) waits to save first, and did not go on"
        }
        return StoreError(
            .storeBusy, "saving to \(storePath) failed: \(cause) within \(timeout). Let it run or end it, then save again")
    }

    /// Returns the process whose id was recorded at an offset; nil if there is none, or if it was killed.
    private static func process(in file: OpenFile, at offset: Int) -> Int32? {
        var recorded: Int32 = 0
        guard (withUnsafeMutableBytes(of: &recorded) { try? file.read(into: $0, at: offset) }) == 4 else { return nil }
        let process = Int32(littleEndian: recorded)
        return process == 0 || CurrentProcess.isGone(process) ? nil : process
    }

    /// Records a process for error messages of other processes; 0 if there is none.
    private static func name(_ process: Int32, in file: OpenFile, at offset: Int) {
        withUnsafeBytes(of: process.littleEndian) { try? file.write($0, at: offset) }
    }

    // MARK: Locks

    // A system without locks of open files has locks of the process. They suffice, because a store opens the signal file once, so
    // that no other close releases them.

    private func lock(_ file: OpenFile, _ byte: Byte, exclusively: Bool) throws -> Bool {
        do throws(SystemError) {
            return try file.tryLock(byte: byte.rawValue, exclusively ? .exclusive : .shared, owner: .openFile)
        } catch {
            throw StoreError(
                .inputOutput,
                "saving to \(storePath) failed: \(path) cannot be locked: \(error). Move the store to a file system with locks")
        }
    }

    private static func unlock(_ file: OpenFile, _ byte: Byte) { file.unlock(byte: byte.rawValue, owner: .openFile) }

    private static func isLockedElsewhere(_ file: OpenFile, _ byte: Byte) -> Bool {
        (try? file.isLockedElsewhere(byte: byte.rawValue, owner: .openFile)) ?? false
    }
}

extension LMDBStore {
    /// Acquires the right to save by file locks, on the file beside the store whose name ends in `-signal`. Blocks for at most
    /// ``LMDBStore/Options/busyTimeout``.
    /// - Throws: `StoreError` `.storeBusy`, which names the process that has the conflicting claim. `.fileReplaced` instead of a wait
    ///   if the file has lost its name: the process that has the claim cannot write its saves either.
    public func claimSaves(_ kind: SaveClaimKind) throws -> (any SaveClaim)? {
        try beginUse()
        let claim = try claims.claim(kind, whileWaiting: checkFileIdentity)
        if kind == .holdingBack { try showCommitOfDeadWriter() }
        return claim
    }

    /// Makes the commit of a killed writer visible. A process killed between writing its commit and counting it in the lock
    /// file leaves a commit that readers do not see until the next commit. Saves that are held back must follow it, so it is
    /// counted first.
    private func showCommitOfDeadWriter() throws {
        let newest = try mappingErrors(environment.information).lastTransaction
        guard try newestSnapshot().transactionNumber < newest else { return }
        try write(.durable) { _ in }
    }

    /// Watches for other processes that wait for a claim of this process.
    public func watchClaimRequests(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)? {
        try claims.watchRequests(body)
    }
}
