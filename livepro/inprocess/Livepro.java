import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * For Java programs that livepro measures: say from inside what is to be counted.
 *
 * <pre>
 * for (int i = 0; i < 10000; i++) work();   // warm-up
 * Livepro.reset();
 * work();
 * Livepro.snapshot("one iteration");
 * </pre>
 *
 * Each method reads a symbolic link below /proc/livepro: one system call, which livepro answers.
 * Where livepro does not watch the process there is no such link, and nothing happens: the methods then
 * return false, or -1. Only the JDK is needed: no native code, no agent.
 *
 * Commands concern the whole run, and are exact for the calling thread: they take effect right behind the
 * system call's instruction. All methods may be called from any thread.
 */
public final class Livepro {
    private static final Path RESET = command("reset");
    private static final Path PAUSE = command("pause");
    private static final Path RESUME = command("resume");
    private static final Path STATUS = command("status");
    private static final Path INSTRUCTIONS = command("instructions");
    private static final Path SIMD = command("simd");

    private Livepro() {}

    /** Whether livepro watches this process. */
    public static boolean active() {
        return ask(STATUS) != null;
    }

    /** Count from here: forget what has been counted. */
    public static boolean reset() {
        return ask(RESET) != null;
    }

    /** Keep the counts of this moment for the report. */
    public static boolean snapshot(String label) {
        StringBuilder path = new StringBuilder("snapshot/");
        for (byte b : label.getBytes(StandardCharsets.UTF_8)) {
            if (b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z') {
                path.append((char) b);
            } else {
                path.append('%');
                path.append(Character.forDigit(b >> 4 & 15, 16)).append(Character.forDigit(b & 15, 16));
            }
        }
        return ask(command(path.toString())) != null;
    }

    /** Count nothing until {@link #resume}. */
    public static boolean pause() {
        return ask(PAUSE) != null;
    }

    /** Count again. */
    public static boolean resume() {
        return ask(RESUME) != null;
    }

    /** Instructions that this thread has executed since the last reset, without pauses; -1 without livepro. */
    public static long instructions() {
        return number(INSTRUCTIONS);
    }

    /** SIMD instructions among them; -1 without livepro. */
    public static long simd() {
        return number(SIMD);
    }

    private static Path command(String name) {
        return Path.of("/proc/livepro/" + name);
    }

    private static long number(Path path) {
        String answer = ask(path);
        return answer == null ? -1 : Long.parseLong(answer);
    }

    private static String ask(Path path) {
        try {
            String answer = Files.readSymbolicLink(path).toString();
            if (answer.startsWith("error: ")) {
                throw new IllegalStateException(answer);
            }
            return answer;
        } catch (IOException absent) {
            return null;
        }
    }
}
